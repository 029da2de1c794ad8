//! Request and correlation ids: UUIDs of version 4.

use rand::RngExt as _;
use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::SeedableRng as _;

/// A source of ids.
pub(crate) struct Ids(ChaCha8Rng);

impl Ids {
    /// Ids from the system's entropy.
    pub(super) fn new() -> Ids {
        let mut seed = [0_u8; 32];
        // Without entropy ids may repeat between runs, never within one: the address of a local and the clock
        // still differ between workers.
        if rustix::rand::getrandom(&mut seed, rustix::rand::GetRandomFlags::empty()).is_err() {
            seed[..8].copy_from_slice(&aiperf_clock::now().0.to_le_bytes());
            let place = std::ptr::from_ref(&seed) as usize as u64;
            seed[8..16].copy_from_slice(&place.to_le_bytes());
        }
        Ids(ChaCha8Rng::from_seed(seed))
    }

    /// The next id, in its 36-character form.
    pub(super) fn next(&mut self) -> [u8; 36] {
        written(self.0.random())
    }

    /// A key for [`numbered`].
    pub(crate) fn key() -> [u8; 32] {
        Ids::new().0.random()
    }
}

/// Id `number` under `key`: every thread that is asked gives the same.
pub(super) fn numbered(key: &[u8; 32], number: u64) -> [u8; 36] {
    let mut draws = ChaCha8Rng::from_seed(*key);
    draws.set_stream(number);
    written(draws.random())
}

fn written(mut bytes: [u8; 16]) -> [u8; 36] {
    const HEX: &[u8; 16] = b"0123456789abcdef";
    bytes[6] = bytes[6] & 0x0f | 0x40;
    bytes[8] = bytes[8] & 0x3f | 0x80;
    let mut text = [b'-'; 36];
    let mut at = 0;
    for (index, byte) in bytes.iter().enumerate() {
        if matches!(index, 4 | 6 | 8 | 10) {
            at += 1;
        }
        text[at] = HEX[usize::from(byte >> 4)];
        text[at + 1] = HEX[usize::from(byte & 15)];
        at += 2;
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_numbered_id_is_the_same_wherever_it_is_asked_for() {
        let key = Ids::key();
        assert_eq!(numbered(&key, 7), numbered(&key, 7));
        assert_ne!(numbered(&key, 7), numbered(&key, 8));
        assert_ne!(numbered(&key, 7), numbered(&Ids::key(), 7));
        assert_eq!(numbered(&key, 7)[14], b'4');
    }

    #[test]
    fn ids_are_version_four_and_differ() {
        let mut ids = Ids::new();
        let (a, b) = (ids.next(), ids.next());
        assert_ne!(a, b);
        for id in [a, b] {
            assert_eq!([id[8], id[13], id[18], id[23], id[14]], *b"----4");
            assert!(b"89ab".contains(&id[19]));
            assert!(id.iter().all(|c| c.is_ascii_hexdigit() || *c == b'-'));
        }
    }
}
