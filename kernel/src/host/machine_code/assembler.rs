//! Instructions of x86-64 as bytes: those that chains need, and no others.
//!
//! The source of the encodings is the Intel 64 and IA-32 Architectures Software Developer's Manual, volume 2:
//! section 2.3 has the prefix VEX, of the instructions with 32 bytes, and section 2.7 the prefix EVEX, of
//! those with 64.

/// The vectors of a set of instructions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Set {
    /// 32 registers of 64 bytes.
    Avx512,
    /// 16 registers of 32 bytes.
    Avx2,
}

impl Set {
    /// The number of vector registers.
    pub(super) fn registers(self) -> u8 {
        match self {
            Self::Avx512 => 32,
            Self::Avx2 => 16,
        }
    }

    /// The bytes of a vector.
    pub(super) fn bytes(self) -> usize {
        match self {
            Self::Avx512 => 64,
            Self::Avx2 => 32,
        }
    }
}

/// The type of the elements of vectors.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Float {
    F32,
    F64,
}

impl Float {
    pub(super) fn bytes(self) -> usize {
        match self {
            Self::F32 => 4,
            Self::F64 => 8,
        }
    }
}

/// A vector register.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Vector(pub(super) u8);

/// A general register.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct General(pub(super) u8);

impl General {
    pub(super) const RAX: Self = Self(0);
    pub(super) const RCX: Self = Self(1);
    pub(super) const RDX: Self = Self(2);
    pub(super) const RBX: Self = Self(3);
    pub(super) const RBP: Self = Self(5);
    pub(super) const RSI: Self = Self(6);
    pub(super) const RDI: Self = Self(7);
}

/// A place in memory: the sum of a register, perhaps another one, and a number of bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Address {
    pub(super) base: General,
    pub(super) index: Option<General>,
    pub(super) bytes: i32,
}

/// The last operand of an instruction.
#[derive(Clone, Copy, Debug)]
pub(super) enum Last {
    Register(Vector),
    /// A vector in memory.
    Memory(Address),
    /// A number in memory, which all elements of the vector are. Only [`Set::Avx512`] has it.
    Number(Address),
}

/// What an instruction computes with two vectors.
#[derive(Clone, Copy, Debug)]
pub(super) enum Arithmetic {
    Add,
    Sub,
    Mul,
}

/// The part of an encoding that says what an instruction does.
struct Opcode {
    /// The table of opcodes: 1 for `0F`, and 2 for `0F 38`.
    map: u8,
    /// The number of the prefix that is a part of the opcode: 0 for none, 1 for `66`.
    prefix: u8,
    wide: bool,
    opcode: u8,
}

/// A place to jump back to.
#[derive(Clone, Copy, Debug)]
pub(super) struct Label(usize);

/// A jump forwards, whose target is not known yet.
#[must_use]
#[derive(Debug)]
pub(super) struct Jump(usize);

/// Code that grows by one instruction after the other.
#[derive(Debug)]
pub(super) struct Assembler {
    pub(super) code: Vec<u8>,
    pub(super) set: Set,
    pub(super) float: Float,
}

impl Assembler {
    /// Loads a vector.
    pub(super) fn load(&mut self, to: Vector, from: Address) {
        self.vector(&moves(0x10), to, Vector(0), Last::Memory(from));
    }

    /// Stores a vector.
    pub(super) fn store(&mut self, to: Address, from: Vector) {
        self.vector(&moves(0x11), from, Vector(0), Last::Memory(to));
    }

    /// Copies a vector.
    pub(super) fn copy(&mut self, to: Vector, from: Vector) {
        self.vector(&moves(0x28), to, Vector(0), Last::Register(from));
    }

    /// Loads a number, which all elements of the vector get.
    pub(super) fn load_number(&mut self, to: Vector, from: Address) {
        let (opcode, wide) = match (self.float, self.set) {
            (Float::F32, _) => (0x18, false),
            (Float::F64, Set::Avx512) => (0x19, true),
            (Float::F64, Set::Avx2) => (0x19, false),
        };
        let opcode = Opcode { map: 2, prefix: 1, wide, opcode };
        // An instruction that takes one number counts its distance in numbers.
        self.encode(&opcode, to, Vector(0), Last::Memory(from), self.float.bytes());
    }

    /// Computes the sum, the difference or the product of `a` and `b`.
    pub(super) fn compute(&mut self, what: Arithmetic, to: Vector, a: Vector, b: Last) {
        let opcode = match what {
            Arithmetic::Add => 0x58,
            Arithmetic::Mul => 0x59,
            Arithmetic::Sub => 0x5c,
        };
        let (prefix, wide) = match self.float {
            Float::F32 => (0, false),
            Float::F64 => (1, self.set == Set::Avx512),
        };
        self.vector(&Opcode { map: 1, prefix, wide, opcode }, to, a, b);
    }

    fn vector(&mut self, opcode: &Opcode, first: Vector, second: Vector, last: Last) {
        let unit = match last {
            Last::Number(_) => self.float.bytes(),
            Last::Register(_) | Last::Memory(_) => self.set.bytes(),
        };
        self.encode(opcode, first, second, last, unit);
    }

    /// Adds an instruction with vectors. A distance of one byte counts units of `unit` bytes.
    fn encode(&mut self, opcode: &Opcode, first: Vector, second: Vector, last: Last, unit: usize) {
        let registers = self.set.registers();
        assert!(first.0 < registers && second.0 < registers, "the set has these registers");
        match self.set {
            Set::Avx512 => self.evex(opcode, first, second, last),
            Set::Avx2 => self.vex(opcode, first, second, last),
        }
        self.code.push(opcode.opcode);
        match last {
            Last::Register(Vector(last)) => self.code.push(0b11 << 6 | (first.0 & 7) << 3 | last & 7),
            Last::Memory(address) | Last::Number(address) => {
                let unit = if self.set == Set::Avx512 { unit } else { 1 };
                self.address(first.0, address, unit);
            }
        }
    }

    fn evex(&mut self, opcode: &Opcode, first: Vector, second: Vector, last: Last) {
        let [index, base] = extensions(last);
        let is_number = matches!(last, Last::Number(_));
        let inverted = |bit: u8, place: u8| (!bit & 1) << place;
        self.code.extend([
            0x62,
            inverted(first.0 >> 3, 7)
                | inverted(index, 6)
                | inverted(base, 5)
                | inverted(first.0 >> 4, 4)
                | opcode.map,
            u8::from(opcode.wide) << 7 | (!second.0 & 15) << 3 | 1 << 2 | opcode.prefix,
            0b10 << 5 | u8::from(is_number) << 4 | inverted(second.0 >> 4, 3),
        ]);
    }

    fn vex(&mut self, opcode: &Opcode, first: Vector, second: Vector, last: Last) {
        assert!(!matches!(last, Last::Number(_)), "AVX2 has no operand that is a number in memory");
        let [index, base] = extensions(last);
        let inverted = |bit: u8, place: u8| (!bit & 1) << place;
        self.code.extend([
            0xc4,
            inverted(first.0 >> 3, 7) | inverted(index, 6) | inverted(base, 5) | opcode.map,
            u8::from(opcode.wide) << 7 | (!second.0 & 15) << 3 | 1 << 2 | opcode.prefix,
        ]);
    }

    /// Adds the bytes of an address, beside a register or a part of the opcode.
    fn address(&mut self, register: u8, Address { base, index, bytes }: Address, unit: usize) {
        let units = bytes / unit as i32;
        let short = i8::try_from(units).ok().filter(|_| units * unit as i32 == bytes);
        let kind = match short {
            // The base 5 without a distance would be another kind of address.
            Some(0) if base.0 & 7 != 5 => 0b00,
            Some(_) => 0b01,
            None => 0b10,
        };
        let (mode, register) = (kind << 6, (register & 7) << 3);
        match index {
            None if base.0 & 7 != 4 => self.code.push(mode | register | base.0 & 7),
            // 4 stands for a byte more, and in this one for no index.
            _ => {
                let index = index.map_or(4, |index| index.0 & 7);
                self.code.extend([mode | register | 4, index << 3 | base.0 & 7]);
            }
        }
        match (kind, short) {
            (0b01, Some(short)) => self.code.extend(short.to_le_bytes()),
            (0b10, _) => self.code.extend(bytes.to_le_bytes()),
            _ => {}
        }
    }

    /// Adds an instruction with general registers of 64 bits, one of them in an address.
    fn general(&mut self, opcode: u8, register: General, address: Address) {
        let index = address.index.map_or(0, |index| index.0 >> 3);
        self.code.extend([0x48 | (register.0 >> 3) << 2 | index << 1 | address.base.0 >> 3, opcode]);
        self.address(register.0, address, 1);
    }

    /// Loads a pointer.
    pub(super) fn load_pointer(&mut self, to: General, from: Address) {
        self.general(0x8b, to, from);
    }

    /// Sets a register to an address.
    pub(super) fn set_to(&mut self, to: General, address: Address) {
        self.general(0x8d, to, address);
    }

    pub(super) fn push(&mut self, General(register): General) {
        if register >= 8 {
            self.code.push(0x41);
        }
        self.code.push(0x50 | register & 7);
    }

    pub(super) fn pop(&mut self, General(register): General) {
        if register >= 8 {
            self.code.push(0x41);
        }
        self.code.push(0x58 | register & 7);
    }

    /// Compares two registers of the first eight.
    fn compare(&mut self, a: General, b: General) {
        self.code.extend([0x48, 0x39, 0b11 << 6 | b.0 << 3 | a.0]);
    }

    /// Jumps forwards if `a` is above `b`.
    pub(super) fn jump_if_above(&mut self, a: General, b: General) -> Jump {
        self.compare(a, b);
        self.code.extend([0x0f, 0x87, 0, 0, 0, 0]);
        Jump(self.code.len())
    }

    /// Jumps back to a label if `a` is not above `b`.
    pub(super) fn jump_back_unless_above(&mut self, a: General, b: General, Label(to): Label) {
        self.compare(a, b);
        self.code.extend([0x0f, 0x86]);
        let distance = to as i64 - (self.code.len() as i64 + 4);
        self.code.extend(distance_of_jump(distance));
    }

    /// A label at the next instruction.
    pub(super) fn label(&self) -> Label {
        Label(self.code.len())
    }

    /// Lets a jump lead to the next instruction.
    pub(super) fn land(&mut self, Jump(from): Jump) {
        let distance = (self.code.len() - from) as i64;
        self.code[from - 4..from].copy_from_slice(&distance_of_jump(distance));
    }

    /// Returns, with the upper parts of vector registers clean: other code would be slow with them.
    pub(super) fn clean_and_return(&mut self) {
        self.code.extend([0xc5, 0xf8, 0x77, 0xc3]);
    }

    /// Begins a cache line of code with the next instruction. Returns its place.
    pub(super) fn align(&mut self) -> usize {
        const NO_OPERATION: u8 = 0x90;
        self.code.resize(self.code.len().next_multiple_of(64), NO_OPERATION);
        self.code.len()
    }
}

/// An instruction that moves a vector, whatever the type of its elements.
fn moves(opcode: u8) -> Opcode {
    Opcode { map: 1, prefix: 0, wide: false, opcode }
}

/// The upper bits of the index and of the base of an operand, or those of a register.
fn extensions(last: Last) -> [u8; 2] {
    match last {
        Last::Register(Vector(register)) => [register >> 4 & 1, register >> 3 & 1],
        Last::Memory(address) | Last::Number(address) => {
            [address.index.map_or(0, |index| index.0 >> 3), address.base.0 >> 3]
        }
    }
}

fn distance_of_jump(distance: i64) -> [u8; 4] {
    i32::try_from(distance).expect("a program has less than two gigabytes of code").to_le_bytes()
}
