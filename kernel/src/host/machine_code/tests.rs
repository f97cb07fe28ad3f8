//! The bytes of instructions, as the assembler and the disassembler of GNU binutils have them; and that there
//! is machine code at all.

use super::{
    MachineCode,
    assembler::{Address, Arithmetic, Assembler, Float, General, Last, Set, Vector},
};
use crate::{Instructions, Program, Tape};

fn at(base: General, bytes: i32) -> Address {
    Address { base, index: None, bytes }
}

fn in_block(base: General, bytes: i32) -> Address {
    Address { base, index: Some(General::RCX), bytes }
}

/// The bytes of the instructions that `write` adds.
fn bytes(set: Set, float: Float, write: impl FnOnce(&mut Assembler)) -> String {
    let mut assembler = Assembler { code: Vec::new(), set, float };
    write(&mut assembler);
    assembler.code.iter().map(|byte| format!("{byte:02x}")).collect::<Vec<_>>().join(" ")
}

/// Compares instructions with their bytes.
macro_rules! same {
    ($set:ident $float:ident: $($what:literal $write:expr => $bytes:literal,)*) => {
        $(
            let write: fn(&mut Assembler) = $write;
            assert_eq!(bytes(Set::$set, Float::$float, write), $bytes, "{}", $what);
        )*
    };
}

#[test]
fn instructions_with_avx512_have_their_bytes() {
    let _deadline = testing::deadline();
    same! { Avx512 F32:
        "vmovups 0x40(%r13,%rcx), %zmm17" |a| a.load(Vector(17), in_block(General(13), 64))
            => "62 c1 7c 48 10 4c 0d 01",
        "vmovups 0x64(%rbp,%rcx), %zmm3" |a| a.load(Vector(3), in_block(General::RBP, 100))
            => "62 f1 7c 48 10 9c 0d 64 00 00 00",
        "vmovups %zmm31, (%r12,%rcx)" |a| a.store(in_block(General(12), 0), Vector(31))
            => "62 41 7c 48 11 3c 0c",
        "vmovups %zmm31, (%r12)" |a| a.store(at(General(12), 0), Vector(31)) => "62 41 7c 48 11 3c 24",
        "vmovaps %zmm25, %zmm9" |a| a.copy(Vector(9), Vector(25)) => "62 11 7c 48 28 c9",
        "vaddps %zmm1, %zmm30, %zmm16"
            |a| a.compute(Arithmetic::Add, Vector(16), Vector(30), Last::Register(Vector(1)))
            => "62 e1 0c 40 58 c1",
        "vaddps 0x40(%r9,%rcx), %zmm2, %zmm8"
            |a| a.compute(Arithmetic::Add, Vector(8), Vector(2), Last::Memory(in_block(General(9), 64)))
            => "62 51 6c 48 58 44 09 01",
        "vmulps 0xc(%rsi){1to16}, %zmm5, %zmm24"
            |a| a.compute(Arithmetic::Mul, Vector(24), Vector(5), Last::Number(at(General::RSI, 12)))
            => "62 61 54 58 59 46 03",
        "vbroadcastss 0x14(%rsi), %zmm18" |a| a.load_number(Vector(18), at(General::RSI, 20))
            => "62 e2 7d 48 18 56 05",
    }
    same! { Avx512 F64:
        "vsubpd 0x2000(%rax,%rcx), %zmm20, %zmm1"
            |a| a.compute(Arithmetic::Sub, Vector(1), Vector(20), Last::Memory(in_block(General::RAX, 8192)))
            => "62 f1 dd 40 5c 8c 08 00 20 00 00",
        "vmulpd 0x400(%rsi){1to8}, %zmm5, %zmm24"
            |a| a.compute(Arithmetic::Mul, Vector(24), Vector(5), Last::Number(at(General::RSI, 1024)))
            => "62 61 d5 58 59 86 00 04 00 00",
        "vbroadcastsd 0x18(%rsi), %zmm7" |a| a.load_number(Vector(7), at(General::RSI, 24))
            => "62 f2 fd 48 19 7e 03",
    }
}

#[test]
fn instructions_with_avx2_have_their_bytes() {
    let _deadline = testing::deadline();
    same! { Avx2 F32:
        "vmovups 0x20(%r13,%rcx), %ymm9" |a| a.load(Vector(9), in_block(General(13), 32))
            => "c4 41 7c 10 4c 0d 20",
        "vmovups %ymm15, 0xc8(%r8)" |a| a.store(at(General(8), 200), Vector(15))
            => "c4 41 7c 11 b8 c8 00 00 00",
        "vmovaps %ymm2, %ymm12" |a| a.copy(Vector(12), Vector(2)) => "c4 61 7c 28 e2",
        "vaddps %ymm9, %ymm12, %ymm14"
            |a| a.compute(Arithmetic::Add, Vector(14), Vector(12), Last::Register(Vector(9)))
            => "c4 41 1c 58 f1",
        "vbroadcastss 0x4(%rsi), %ymm11" |a| a.load_number(Vector(11), at(General::RSI, 4))
            => "c4 62 7d 18 5e 04",
    }
    same! { Avx2 F64:
        "vsubpd (%r9,%rcx), %ymm2, %ymm8"
            |a| a.compute(Arithmetic::Sub, Vector(8), Vector(2), Last::Memory(in_block(General(9), 0)))
            => "c4 41 6d 5c 04 09",
        "vmulpd 0x20(%rbp,%rcx), %ymm10, %ymm1"
            |a| a.compute(Arithmetic::Mul, Vector(1), Vector(10), Last::Memory(in_block(General::RBP, 32)))
            => "c4 e1 2d 59 4c 0d 20",
        "vbroadcastsd 0x8(%rsi), %ymm3" |a| a.load_number(Vector(3), at(General::RSI, 8))
            => "c4 e2 7d 19 5e 08",
    }
}

#[test]
fn instructions_with_general_registers_have_their_bytes() {
    let _deadline = testing::deadline();
    same! { Avx512 F32:
        "mov 0x108(%rdi), %r14" |a| a.load_pointer(General(14), at(General::RDI, 264))
            => "4c 8b b7 08 01 00 00",
        "mov 0x8(%rdi), %rax" |a| a.load_pointer(General::RAX, at(General::RDI, 8)) => "48 8b 47 08",
        "lea 0x40(%rcx), %rax" |a| a.set_to(General::RAX, at(General::RCX, 64)) => "48 8d 41 40",
        "push %rbx; push %r15" |a| [General::RBX, General(15)].into_iter().for_each(|register| a.push(register))
            => "53 41 57",
        "pop %rbp; pop %r12" |a| [General::RBP, General(12)].into_iter().for_each(|register| a.pop(register))
            => "5d 41 5c",
        "vzeroupper; ret" |a| a.clean_and_return() => "c5 f8 77 c3",
        "cmp %rdx, %rax; ja 1f; push %rbx; 1:" |a| {
            let jump = a.jump_if_above(General::RAX, General::RDX);
            a.push(General::RBX);
            a.land(jump);
        } => "48 39 d0 0f 87 01 00 00 00 53",
        "1: push %rbx; cmp %rdx, %rax; jbe 1b" |a| {
            let label = a.label();
            a.push(General::RBX);
            a.jump_back_unless_above(General::RAX, General::RDX, label);
        } => "53 48 39 d0 0f 86 f6 ff ff ff",
    }
}

#[test]
fn a_program_has_machine_code() {
    let _deadline = testing::deadline();
    let tape = Tape::new(1);
    let (u, v) = (tape.input::<f32, 1>(), tape.output::<f32, 1>());
    v.set(u.here() * 2.0 + 1.0);
    let program = Program::new(&tape.finish().expect("the kernel is right"));
    for set in Instructions::ALL.into_iter().filter(|set| set.is_available()) {
        let has_code = MachineCode::new(&program, set).is_some();
        let is_compiled = matches!(set, Instructions::CompiledAvx512 | Instructions::CompiledAvx2);
        assert_eq!(has_code, is_compiled, "{set:?}: does this system allow a process to make code?");
    }
}
