//! A table of things with names of their own: found by index, their places used again, their names never.

/// Values by name. A name is a place and how often that place was given away before.
#[derive(Debug)]
pub(crate) struct Slab<T> {
    places: Vec<Place<T>>,
    free: Vec<u32>,
}

#[derive(Debug)]
struct Place<T> {
    generation: u32,
    value: Option<T>,
}

impl<T> Default for Slab<T> {
    fn default() -> Self {
        Self { places: Vec::new(), free: Vec::new() }
    }
}

impl<T> Slab<T> {
    /// Adds a value; its name.
    pub(crate) fn insert(&mut self, value: T) -> u64 {
        let at = self.free.pop().unwrap_or_else(|| {
            self.places.push(Place { generation: 0, value: None });
            u32::try_from(self.places.len() - 1).expect("fewer than 2^32 at a time")
        });
        let place = &mut self.places[at as usize];
        place.value = Some(value);
        u64::from(place.generation) << 32 | u64::from(at)
    }

    pub(crate) fn get(&self, name: u64) -> Option<&T> {
        let place = self.places.get(name as u32 as usize)?;
        place.value.as_ref().filter(|_| place.generation == (name >> 32) as u32)
    }

    pub(crate) fn get_mut(&mut self, name: u64) -> Option<&mut T> {
        let place = self.places.get_mut(name as u32 as usize)?;
        place.value.as_mut().filter(|_| place.generation == (name >> 32) as u32)
    }

    /// Removes a value, if it is there. A place whose names are used up is not used again.
    pub(crate) fn remove(&mut self, name: u64) -> Option<T> {
        self.get(name)?;
        let at = name as u32;
        let place = &mut self.places[at as usize];
        if let Some(next) = place.generation.checked_add(1) {
            place.generation = next;
            self.free.push(at);
        }
        place.value.take()
    }

    pub(crate) fn values(&self) -> impl Iterator<Item = &T> {
        self.places.iter().filter_map(|place| place.value.as_ref())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_never_used_again() {
        let mut slab = Slab::default();
        let (a, b) = (slab.insert('a'), slab.insert('b'));
        assert_eq!(slab.remove(a), Some('a'));
        let c = slab.insert('c');
        assert_ne!(a, c);
        assert_eq!((slab.get(a), slab.get(b), slab.get(c)), (None, Some(&'b'), Some(&'c')));
        assert_eq!(slab.remove(a), None);
        assert_eq!(slab.values().collect::<String>(), "cb");
    }
}
