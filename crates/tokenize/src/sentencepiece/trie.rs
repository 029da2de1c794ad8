//! Texts found by their beginnings.

/// A set of texts, each with a number.
#[derive(Debug, Default)]
pub(crate) struct Trie {
    nodes: Vec<Node>,
    /// The byte that leads to each child, and the child; those of one node lie together, in order.
    labels: Vec<u8>,
    targets: Vec<u32>,
}

#[derive(Clone, Copy, Debug)]
struct Node {
    first: u32,
    count: u16,
    value: u32,
}

const NO_VALUE: u32 = u32::MAX;
pub(crate) const ROOT: u32 = 0;

impl Trie {
    /// Of texts and their numbers; of equal texts the last counts.
    pub(crate) fn new<'text>(texts: impl IntoIterator<Item = (&'text [u8], u32)>) -> Trie {
        let mut texts: Vec<_> = texts.into_iter().filter(|(text, _)| !text.is_empty()).collect();
        texts.sort_by(|left, right| left.0.cmp(right.0));
        let mut trie = Trie::default();
        let empty = Node { first: 0, count: 0, value: NO_VALUE };
        trie.nodes.push(empty);
        // Nodes still to be filled, with the span of texts below them and the depth.
        let mut open = vec![(ROOT, 0..texts.len(), 0)];
        while let Some((node, mut span, depth)) = open.pop() {
            while span.start < span.end && texts[span.start].0.len() == depth {
                trie.nodes[node as usize].value = texts[span.start].1;
                span.start += 1;
            }
            trie.nodes[node as usize].first = trie.labels.len() as u32;
            while span.start < span.end {
                let label = texts[span.start].0[depth];
                let len = texts[span.clone()].partition_point(|(text, _)| text[depth] == label);
                let child = trie.nodes.len() as u32;
                trie.nodes.push(empty);
                trie.labels.push(label);
                trie.targets.push(child);
                trie.nodes[node as usize].count += 1;
                open.push((child, span.start..span.start + len, depth + 1));
                span.start += len;
            }
        }
        trie
    }

    /// The node that `byte` leads to, and the number of the text that ends there.
    #[inline]
    pub(crate) fn step(&self, node: u32, byte: u8) -> Option<(u32, Option<u32>)> {
        let Node { first, count, .. } = *self.nodes.get(node as usize)?;
        let span = first as usize..first as usize + usize::from(count);
        let at = self.labels[span.clone()].binary_search(&byte).ok()?;
        let child = self.targets[span.start + at];
        let value = self.nodes[child as usize].value;
        Some((child, (value != NO_VALUE).then_some(value)))
    }

    /// The longest text that `bytes` begin with: its length and number.
    pub(crate) fn longest(&self, bytes: &[u8]) -> Option<(usize, u32)> {
        let (mut node, mut found) = (ROOT, None);
        for (index, &byte) in bytes.iter().enumerate() {
            let Some((child, value)) = self.step(node, byte) else { break };
            found = value.map(|value| (index + 1, value)).or(found);
            node = child;
        }
        found
    }
}
