//! Pieces joined two by two, the best score first.

use std::cmp::Ordering;
use std::collections::{BinaryHeap, HashMap};

use super::proto::{Kind, Piece};
use super::trie::Trie;

#[derive(Debug)]
pub(crate) struct Bpe {
    numbers: HashMap<Box<str>, u32>,
    scores: Vec<f32>,
    unused: Vec<bool>,
    has_unused: bool,
    /// Pieces that are never cut.
    kept: Trie,
}

/// Two neighbours that may join.
struct Pair {
    score: f32,
    left: u32,
    right: u32,
    len: u32,
}

impl PartialEq for Pair {
    fn eq(&self, other: &Pair) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for Pair {}

impl PartialOrd for Pair {
    fn partial_cmp(&self, other: &Pair) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Pair {
    /// The best score is the greatest; of equals the leftmost.
    fn cmp(&self, other: &Pair) -> Ordering {
        self.score.total_cmp(&other.score).then(other.left.cmp(&self.left))
    }
}

#[derive(Clone, Copy)]
struct Symbol {
    begin: u32,
    len: u32,
    previous: u32,
    next: u32,
    whole: bool,
}

const NONE: u32 = u32::MAX;

impl Bpe {
    pub(crate) fn new(pieces: &[Piece], kept: Trie) -> Bpe {
        let joins = |piece: &Piece| matches!(piece.kind, Kind::Normal | Kind::UserDefined | Kind::Unused);
        let unused: Vec<bool> = pieces.iter().map(|piece| piece.kind == Kind::Unused).collect();
        Bpe {
            numbers: (0..)
                .zip(pieces)
                .filter(|(_, piece)| joins(piece))
                .map(|(number, piece)| (piece.text.as_str().into(), number))
                .collect(),
            // Zero and minus zero are one score.
            scores: pieces.iter().map(|piece| piece.score + 0.0).collect(),
            has_unused: unused.contains(&true),
            unused,
            kept,
        }
    }

    /// Calls `found` with each piece in order: its number, `None` for a text no piece has, and where it ends.
    pub(crate) fn cut(&self, text: &str, mut found: impl FnMut(Option<u32>, usize)) {
        let mut symbols = self.symbols(text);
        let mut queue = BinaryHeap::with_capacity(symbols.len());
        // How pieces that must not be used came about.
        let mut made: HashMap<&str, (&str, &str)> = HashMap::new();
        for right in 1..symbols.len() as u32 {
            self.offer(text, &symbols, right - 1, right, &mut queue, &mut made);
        }
        while let Some(pair) = queue.pop() {
            let (left, right) = (symbols[pair.left as usize], symbols[pair.right as usize]);
            if left.len == 0 || right.len == 0 || left.len + right.len != pair.len {
                continue;
            }
            symbols[pair.left as usize].len = pair.len;
            symbols[pair.left as usize].next = right.next;
            symbols[pair.right as usize].len = 0;
            if right.next != NONE {
                symbols[right.next as usize].previous = pair.left;
                self.offer(text, &symbols, pair.left, right.next, &mut queue, &mut made);
            }
            if left.previous != NONE {
                self.offer(text, &symbols, left.previous, pair.left, &mut queue, &mut made);
            }
        }
        for symbol in symbols.iter().filter(|symbol| symbol.len > 0) {
            let (begin, end) = (symbol.begin as usize, (symbol.begin + symbol.len) as usize);
            if self.has_unused {
                self.take_apart(&text[begin..end], end, &made, &mut found);
            } else {
                found(self.numbers.get(&text[begin..end]).copied(), end);
            }
        }
    }

    fn symbols(&self, text: &str) -> Vec<Symbol> {
        let mut symbols: Vec<Symbol> = Vec::with_capacity(text.len());
        let mut begin = 0;
        while let Some(character) = text[begin..].chars().next() {
            let kept = self.kept.longest(&text.as_bytes()[begin..]);
            let len = kept.map_or(character.len_utf8(), |(len, _)| len);
            let index = symbols.len() as u32;
            symbols.push(Symbol {
                begin: begin as u32,
                len: len as u32,
                previous: index.wrapping_sub(1),
                next: index + 1,
                whole: kept.is_some(),
            });
            begin += len;
        }
        if let Some(last) = symbols.last_mut() {
            last.next = NONE;
        }
        symbols
    }

    fn offer<'text>(
        &self,
        text: &'text str,
        symbols: &[Symbol],
        left: u32,
        right: u32,
        queue: &mut BinaryHeap<Pair>,
        made: &mut HashMap<&'text str, (&'text str, &'text str)>,
    ) {
        let (one, other) = (symbols[left as usize], symbols[right as usize]);
        if one.whole || other.whole {
            return;
        }
        let span = |from: u32, len: u32| &text[from as usize..(from + len) as usize];
        let len = one.len + other.len;
        let joined = span(one.begin, len);
        let Some(&number) = self.numbers.get(joined) else { return };
        queue.push(Pair { score: self.scores[number as usize], left, right, len });
        if self.unused[number as usize] {
            made.insert(joined, (span(one.begin, one.len), span(other.begin, other.len)));
        }
    }

    /// A piece that must not be used is taken apart into those it was made of.
    fn take_apart<'text>(
        &self,
        text: &'text str,
        end: usize,
        made: &HashMap<&'text str, (&'text str, &'text str)>,
        found: &mut impl FnMut(Option<u32>, usize),
    ) {
        let mut open = vec![(text, end)];
        while let Some((text, end)) = open.pop() {
            let number = self.numbers.get(text).copied();
            let parts = number.filter(|&number| self.unused[number as usize]).and_then(|_| made.get(text));
            match parts {
                Some(&(left, right)) => {
                    open.push((right, end));
                    open.push((left, end - right.len()));
                }
                None => found(number, end),
            }
        }
    }
}
