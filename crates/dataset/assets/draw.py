#!/usr/bin/env python3
"""Draws the pictures of this folder. Needs nothing but Python: python3 draw.py"""

import math
import struct
import zlib

# Five columns a glyph, the lowest bit on top.
FONT = {
    "A": "7E1111117E", "B": "7F49494936", "C": "3E41414122", "D": "7F4141221C", "E": "7F49494941",
    "F": "7F09090901", "G": "3E4149497A", "H": "7F0808087F", "I": "00417F4100", "J": "2040413F01",
    "K": "7F08142241", "L": "7F40404040", "M": "7F020C027F", "N": "7F0408107F", "O": "3E4141413E",
    "P": "7F09090906", "Q": "3E4151215E", "R": "7F09192946", "S": "4649494931", "T": "01017F0101",
    "U": "3F4040403F", "V": "1F2040201F", "W": "3F4038403F", "X": "6314081463", "Y": "0708700807",
    "Z": "6151494543", "0": "3E5149453E", "1": "00427F4000", "2": "4261514946", "3": "2141454B31",
    "4": "1814127F10", "5": "2745454539", "6": "3C4A494930", "7": "0171090503", "8": "3649494936",
    "9": "064949291E", ".": "0060600000", ",": "0050300000", "-": "0808080808", "%": "2313086462",
}


class Picture:
    def __init__(self, width, height, ground):
        self.width, self.height = width, height
        self.rows = [[ground] * width for _ in range(height)]

    def put(self, x, y, colour):
        if 0 <= x < self.width and 0 <= y < self.height:
            self.rows[y][x] = colour

    def box(self, left, top, right, bottom, colour):
        for y in range(max(top, 0), min(bottom, self.height)):
            for x in range(max(left, 0), min(right, self.width)):
                self.rows[y][x] = colour

    def disc(self, cx, cy, radius, colour, share=1.0):
        for y in range(cy - radius, cy + radius + 1):
            for x in range(cx - radius, cx + radius + 1):
                if (x - cx) ** 2 + (y - cy) ** 2 <= radius**2 and 0 <= x < self.width and 0 <= y < self.height:
                    below = self.rows[y][x]
                    self.rows[y][x] = tuple(round(c * share + b * (1 - share)) for c, b in zip(colour, below))

    def line(self, x0, y0, x1, y1, colour, thick=2):
        steps = max(abs(x1 - x0), abs(y1 - y0), 1)
        for step in range(steps + 1):
            x = round(x0 + (x1 - x0) * step / steps)
            y = round(y0 + (y1 - y0) * step / steps)
            self.box(x - thick // 2, y - thick // 2, x + (thick + 1) // 2, y + (thick + 1) // 2, colour)

    def text(self, x, y, text, colour, scale=2):
        for letter in text:
            glyph = FONT.get(letter.upper())
            for column in range(5 if glyph else 0):
                bits = int(glyph[column * 2 : column * 2 + 2], 16)
                for row in range(7):
                    if bits >> row & 1:
                        left, top = x + column * scale, y + row * scale
                        self.box(left, top, left + scale, top + scale, colour)
            x += 6 * scale

    def save(self, path):
        def chunk(kind, data):
            return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

        rows, above = bytearray(), bytes(self.width * 3)
        for row in self.rows:
            now = bytes(value for pixel in row for value in pixel)
            left = bytes(3) + now[:-3]
            ways = [
                (1, bytes((a - b) & 255 for a, b in zip(now, left))),
                (2, bytes((a - b) & 255 for a, b in zip(now, above))),
            ]
            way, data = min(ways, key=lambda w: sum(min(value, 256 - value) for value in w[1]))
            rows.append(way)
            rows += data
            above = now
        header = struct.pack(">IIBBBBB", self.width, self.height, 8, 2, 0, 0, 0)
        with open(path, "wb") as file:
            file.write(b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header))
            file.write(chunk(b"IDAT", zlib.compress(bytes(rows), 9)) + chunk(b"IEND", b""))


def chart():
    ink, grid = (40, 44, 52), (222, 226, 232)
    p = Picture(1024, 680, (255, 255, 255))
    p.text(80, 28, "Requests served per hour", ink, 4)
    for step in range(6):
        y = 600 - step * 96
        p.line(90, y, 980, y, grid, 2)
        p.text(30, y - 7, str(step * 200), ink, 2)
    counts = [310, 420, 380, 560, 720, 690, 880, 940, 760, 610, 480, 350]
    for index, count in enumerate(counts):
        left = 110 + index * 72
        p.box(left, 600 - count * 480 // 1000, left + 44, 600, (66, 133 + index * 6, 200))
        p.text(left + 10, 612, f"{8 + index:02}", ink, 2)
    points = [(132 + index * 72, 560 - round(300 * math.sin(index / 4.2))) for index in range(12)]
    for (x0, y0), (x1, y1) in zip(points, points[1:]):
        p.line(x0, y0, x1, y1, (214, 69, 65), 4)
    for x, y in points:
        p.disc(x, y, 7, (214, 69, 65))
    p.line(90, 110, 90, 600, ink, 3)
    p.line(90, 600, 980, 600, ink, 3)
    p.box(720, 90, 744, 106, (66, 160, 200))
    p.text(756, 91, "served", ink, 2)
    p.box(720, 116, 744, 132, (214, 69, 65))
    p.text(756, 117, "load in %", ink, 2)
    p.save("chart.png")


def scene():
    p = Picture(1024, 680, (0, 0, 0))
    for y in range(440):
        share = y / 440
        p.rows[y] = [(round(70 + 150 * share), round(140 + 80 * share), round(220 - 20 * share))] * 1024
    p.disc(800, 130, 64, (255, 236, 170))
    for cx, cy in [(180, 110), (230, 96), (284, 112), (520, 170), (574, 156), (628, 172)]:
        p.disc(cx, cy, 38, (246, 248, 252))
    hills = [(90, 300, 0.9, (104, 130, 150)), (70, 360, 1.7, (84, 128, 96)), (46, 420, 2.9, (64, 112, 62))]
    for height, base, speed, colour in hills:
        for x in range(1024):
            top = round(base + height * math.sin(x / 1024 * speed * math.pi + speed) / 1.2)
            for y in range(max(top, 0), 520):
                p.rows[y][x] = colour
    for y in range(520, 680):
        wave = (y * 7919) % 13
        p.rows[y] = [(46 + wave, 98 + wave, 150 + (y - 520) // 4)] * 1024
        if y % 9 == 0:
            start = (y * 2654435761) % 700
            p.line(start, y, start + 120 + (y * 31) % 160, y, (150, 190, 215), 2)
    for x, size in [(90, 70), (150, 90), (250, 64), (900, 84), (960, 66)]:
        p.box(x - 5, 500 - size // 3, x + 5, 520, (92, 64, 40))
        for layer in range(3):
            width = size // 2 - layer * 8
            for row in range(size // 2):
                y = 500 - size // 3 - layer * size // 3 - row
                p.line(x - width * (size // 2 - row) // (size // 2), y, x + width * (size // 2 - row) // (size // 2), y, (34, 84 + layer * 14, 46), 1)
    p.box(520, 420, 680, 520, (196, 120, 84))
    for row in range(70):
        p.line(500 + row, 420 - row, 700 - row, 420 - row, (128, 50, 44), 1)
    p.box(582, 460, 618, 520, (78, 48, 34))
    for x in (540, 634):
        p.box(x, 448, x + 28, 476, (250, 224, 140))
        p.line(x + 14, 448, x + 14, 476, (78, 48, 34), 2)
    p.save("scene.png")


def page():
    ink, soft = (30, 30, 34), (110, 112, 118)
    p = Picture(768, 1024, (252, 251, 247))
    p.text(72, 70, "Notes on queues", ink, 5)
    p.text(72, 124, "A short page with a table", soft, 2)
    words = (
        "a server that answers in order makes every caller wait for the one before it while one that takes many at a "
        "time lets the short ones pass the mean time says little about the last of a hundred and the last of a hundred "
        "is what a person who asks ten times a minute will meet before the hour is over so count the slow ones too"
    ).split()
    x, y, at = 72, 176, 0
    while y < 560:
        word = words[at % len(words)]
        at += 1
        if x + len(word) * 12 > 700:
            x, y = 72, y + 24
        p.text(x, y, word, ink, 2)
        x += (len(word) + 1) * 12
    table = [("callers", "mean", "p99"), ("1", "0.12", "0.19"), ("8", "0.31", "0.80"), ("64", "1.95", "7.42")]
    for row, cells in enumerate(table):
        top = 620 + row * 44
        p.box(72, top, 696, top + 44, (232, 236, 242) if row == 0 else (252, 251, 247))
        p.line(72, top + 43, 695, top + 43, soft, 1)
        for column, cell in enumerate(cells):
            p.text(90 + column * 210, top + 14, cell, ink, 2)
    p.box(72, 840, 696, 960, (240, 244, 236))
    p.box(72, 840, 80, 960, (96, 140, 84))
    p.text(100, 866, "Measure from the time a request", ink, 2)
    p.text(100, 896, "was meant to leave, not from the", ink, 2)
    p.text(100, 926, "time it left.", ink, 2)
    p.save("page.png")


def colours():
    p = Picture(1024, 768, (0, 0, 0))
    for y in range(768):
        for x in range(1024):
            # Sixteen levels, so that the file stays small.
            p.rows[y][x] = tuple(
                int(128 + 120 * math.sin(x / a + math.cos(y / b) * 2)) // 16 * 16 for a, b in ((140, 210), (190, 160), (230, 120))
            )
    for index in range(9):
        angle = index * 2 * math.pi / 9
        colour = tuple(round(127 + 127 * math.cos(angle + shift)) for shift in (0, 2.1, 4.2))
        p.disc(512 + round(250 * math.cos(angle)), 384 + round(230 * math.sin(angle)), 88, colour, 0.75)
    p.disc(512, 384, 110, (250, 250, 250))
    p.disc(512, 384, 84, (24, 26, 32))
    p.save("colours.png")


for draw in (chart, scene, page, colours):
    draw()
