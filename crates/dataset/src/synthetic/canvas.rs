//! A frame of a video and what is drawn on it.

const CHANNELS: usize = 3;

type Colour = [u8; CHANNELS];

/// Rows of red, green and blue, from the top.
pub(super) struct Canvas {
    width: u16,
    height: u16,
    bytes: Vec<u8>,
}

/// The digits, three bits a row from the top.
const DIGITS: [[u8; 5]; 10] = [
    [7, 5, 5, 5, 7],
    [2, 6, 2, 2, 7],
    [7, 1, 7, 4, 7],
    [7, 1, 3, 1, 7],
    [5, 5, 7, 1, 1],
    [7, 4, 7, 1, 7],
    [7, 4, 7, 5, 7],
    [7, 1, 2, 2, 2],
    [7, 5, 7, 5, 7],
    [7, 5, 7, 1, 7],
];

impl Canvas {
    pub(super) fn new(width: u16, height: u16) -> Canvas {
        Canvas { width, height, bytes: vec![0; usize::from(width) * usize::from(height) * CHANNELS] }
    }

    pub(super) fn width(&self) -> u16 {
        self.width
    }

    pub(super) fn height(&self) -> u16 {
        self.height
    }

    pub(super) fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    pub(super) fn bytes_mut(&mut self) -> &mut [u8] {
        &mut self.bytes
    }

    #[cfg(test)]
    pub(super) fn at(&self, x: usize, y: usize) -> Colour {
        let at = (y * usize::from(self.width) + x) * CHANNELS;
        [self.bytes[at], self.bytes[at + 1], self.bytes[at + 2]]
    }

    pub(super) fn fill(&mut self, colour: Colour) {
        for pixel in self.bytes.chunks_exact_mut(CHANNELS) {
            pixel.copy_from_slice(&colour);
        }
    }

    /// Lines every `step` pixels, the first at the edge.
    pub(super) fn grid(&mut self, step: usize, colour: Colour) {
        let width = usize::from(self.width);
        for (y, row) in self.bytes.chunks_exact_mut(width * CHANNELS).enumerate() {
            for (x, pixel) in row.chunks_exact_mut(CHANNELS).enumerate() {
                if x % step == 0 || y % step == 0 {
                    pixel.copy_from_slice(&colour);
                }
            }
        }
    }

    /// Calls `draw` at a place, and at those beyond the edges from where something of that size reaches in.
    pub(super) fn wrapped(&mut self, x: f64, y: f64, size: f64, draw: impl Fn(&mut Canvas, f64, f64)) {
        let (width, height) = (f64::from(self.width), f64::from(self.height));
        for dx in [0.0, -width, width] {
            for dy in [0.0, -height, height] {
                let (x, y) = (x + dx, y + dy);
                if x > -size && x < width + size && y > -size && y < height + size {
                    draw(self, x, y);
                }
            }
        }
    }

    pub(super) fn disc(&mut self, x: f64, y: f64, radius: f64, colour: Colour) {
        self.area(x, y, radius, colour, |dx, dy| dx * dx + dy * dy <= radius * radius);
    }

    /// A square around a place; `half` is half its side.
    pub(super) fn square(&mut self, x: f64, y: f64, half: f64, colour: Colour) {
        self.area(x, y, half, colour, |dx, dy| dx.abs() <= half && dy.abs() <= half);
    }

    /// A line with round ends; `half` is half its thickness.
    pub(super) fn line(&mut self, from: (f64, f64), to: (f64, f64), half: f64, colour: Colour) {
        let (dx, dy) = (to.0 - from.0, to.1 - from.1);
        let length = dx.hypot(dy).max(1e-9);
        let (x, y) = (f64::midpoint(from.0, to.0), f64::midpoint(from.1, to.1));
        self.area(x, y, length / 2.0 + half, colour, |px, py| {
            // The place along the line that is nearest.
            let along = ((px * dx + py * dy) / length).clamp(-length / 2.0, length / 2.0);
            (px - dx / length * along).hypot(py - dy / length * along) <= half
        });
    }

    /// A number in the upper left corner; each dot of its digits is a square of `scale` pixels.
    pub(super) fn number(&mut self, number: u64, from: usize, scale: usize, colour: Colour) {
        for (place, digit) in number.to_string().bytes().enumerate() {
            for (row, bits) in DIGITS[usize::from(digit - b'0')].iter().enumerate() {
                for column in (0..3).filter(|column| bits >> (2 - column) & 1 != 0) {
                    let (left, top) = (from + (place * 4 + column) * scale, from + row * scale);
                    for y in top..(top + scale).min(usize::from(self.height)) {
                        for x in left..(left + scale).min(usize::from(self.width)) {
                            self.put(x, y, colour);
                        }
                    }
                }
            }
        }
    }

    /// Colours the pixels around a place whose middle is inside; `inside` gets their distance from the place.
    fn area(&mut self, x: f64, y: f64, reach: f64, colour: Colour, inside: impl Fn(f64, f64) -> bool) {
        let span = |middle: f64, end: u16| {
            let from = (middle - reach).floor().max(0.0) as usize;
            let to = ((middle + reach).ceil().max(0.0) as usize).min(usize::from(end));
            from..to
        };
        let across = span(x, self.width);
        for row in span(y, self.height) {
            for column in across.clone() {
                if inside(column as f64 + 0.5 - x, row as f64 + 0.5 - y) {
                    self.put(column, row, colour);
                }
            }
        }
    }

    fn put(&mut self, x: usize, y: usize, colour: Colour) {
        let at = (y * usize::from(self.width) + x) * CHANNELS;
        self.bytes[at..at + CHANNELS].copy_from_slice(&colour);
    }
}
