//! An array as a grid of tiles, and the places of wanted elements in the tiles. A tile is a chunk,
//! the one run of bytes of an array without chunks, or a number of rows of a virtual array.

use std::borrow::Cow;
use std::ops::Range;

use super::selection::{Selection, Slab};
use super::shared_buffer::SharedBuffer;
use crate::array::{Array, ElementPlace, longest_run};
use crate::dtype::Dtype;
use crate::types::Chunk;

/// The wanted elements of an array, in as few dimensions as describe them.
#[derive(Debug)]
pub(super) struct Grid {
    /// Elements in each dimension.
    shape: Vec<u64>,
    /// Elements of a tile in each dimension.
    tile: Vec<u64>,
    /// Elements of a part of a tile in each dimension. A part is the whole tile, unless the tile
    /// can be fetched in parts.
    part: Vec<u64>,
    /// Bytes of an element.
    size: u64,
    /// Whether elements are stored without filters, so that some can be fetched without the others.
    is_plain: bool,
    picks: Picks,
    /// What wanted elements that are not stored have, little-endian, as often as fills the output.
    fill: Vec<u8>,
}

#[derive(Debug)]
enum Picks {
    /// A slab in each dimension.
    Slabs(Vec<Slab>),
    /// Single elements, sorted by tile and by place in the tile.
    Points(Vec<Point>),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Point {
    tile: u64,
    /// Its place in the tile, in elements.
    at: u64,
    /// Its place in the selection.
    to: u64,
}

/// Stored bytes with wanted elements in them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct TileEntry {
    /// The tile's number, in C order of the grid.
    pub(super) tile: u64,
    /// The filters that were skipped.
    pub(super) mask: u32,
    /// Where the bytes lie in the file.
    pub(super) stored: Range<u64>,
    content: Content,
}

/// The wanted elements of an entry.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Content {
    /// The part of the tile with this number. The stored bytes begin at the tile's element `from`.
    Part { number: u64, from: u64 },
    /// The grid's points with these indexes. The stored bytes begin at the tile's element `from`.
    Points { which: Range<usize>, from: u64 },
}

impl Grid {
    /// The grid of the selected elements of an array. The selection must fit the array. If tiles
    /// can be fetched in parts, a part has about `piece` bytes.
    pub(super) fn new(array: &Array, selection: &Selection, piece: u64) -> Self {
        let size = array.dtype.size() as u64;
        let mut shape = array.shape.clone();
        let mut tile = tile_of(array, piece);
        if shape.is_empty() {
            (shape, tile) = (vec![1], vec![1]);
        }
        let picks = match selection {
            Selection::Points(points) => {
                let point = |(to, point): (u64, &Vec<u64>)| {
                    let mut number = 0;
                    let mut at = 0;
                    for ((&x, &length), &tile) in point.iter().zip(&shape).zip(&tile) {
                        number = number * length.div_ceil(tile) + x / tile;
                        at = at * tile + x % tile;
                    }
                    Point { tile: number, at, to }
                };
                let mut points: Vec<Point> = (0..).zip(points).map(point).collect();
                points.sort_unstable();
                Picks::Points(points)
            }
            Selection::Slab(slabs) if !slabs.is_empty() => {
                Picks::Slabs(slabs.iter().map(|slab| slab.scaled(1)).collect())
            }
            Selection::Slab(_) | Selection::All | Selection::Elements(_) => {
                Picks::Slabs(shape.iter().map(|&length| Slab::from(0..length)).collect())
            }
        };
        let fill = wanted_fill(array, selection);
        let mut grid = Self { shape, tile, part: Vec::new(), size, is_plain: false, picks, fill };
        // Rows are counted in the first dimension, so it stays as it is.
        if !array.is_by_rows() {
            grid.merge();
        }
        grid.is_plain = match &array.place {
            ElementPlace::Contiguous(_) => true,
            // A chunk of another size is malformed; its decoder reports the error.
            ElementPlace::Chunked(_, chunks) => {
                let size = grid.tile_bytes();
                array.pipeline.0.is_empty() && chunks.iter().all(|chunk| chunk.size == size)
            }
            ElementPlace::Inline(_) | ElementPlace::Virtual(_) => false,
        };
        grid.part =
            if grid.is_plain { longest_run(&grid.tile, size, piece) } else { grid.tile.clone() };
        if let Selection::Elements(elements) = selection {
            grid.narrow(elements);
        }
        grid
    }

    /// The values of wanted elements that are not stored, little-endian. The output repeats them;
    /// empty for zeros.
    pub(super) fn fill(&self) -> &[u8] {
        &self.fill
    }

    /// Narrows a grid of all elements to these elements in C order, which are whole rows.
    fn narrow(&mut self, elements: &Range<u64>) {
        let row = self.row();
        if let Picks::Slabs(slabs) = &mut self.picks
            && let Some(slab) = slabs.first_mut()
        {
            *slab = Slab::from(elements.start / row..elements.end / row);
        }
    }

    /// The number of elements of a row, which is one step of the first dimension.
    pub(super) fn row(&self) -> u64 {
        self.shape.iter().skip(1).product::<u64>().max(1)
    }

    /// The next of these rows that are put into a window together, and their place in the file; 0
    /// for rows that are not stored, of which as many are taken as fill `room` bytes.
    pub(super) fn band(
        &self,
        array: &Array,
        rows: &Range<u64>,
        room: u64,
    ) -> Option<(u64, Range<u64>)> {
        let step = if self.shape.len() == 1 { self.part[0] } else { self.tile[0] };
        let end = (rows.start / step + 1).saturating_mul(step).min(rows.end);
        if rows.start >= end {
            return None;
        }
        let band = rows.start..end;
        if let Some(offset) = self.first_offset(array, &band) {
            return Some((offset, band));
        }
        let row = self.row() * self.size;
        let left = room.saturating_sub((end - rows.start).saturating_mul(row));
        let more = left.div_ceil(step.saturating_mul(row)).saturating_mul(step);
        let empty = self.unstored_until(array, end).min(rows.end);
        Some((0, rows.start..end.saturating_add(more).min(empty).max(end)))
    }

    /// The first row from `row` on whose tiles may be stored. No tile before it is.
    fn unstored_until(&self, array: &Array, row: u64) -> u64 {
        let ElementPlace::Chunked(_, chunks) = &array.place else { return u64::MAX };
        let first = self.tiles(&(row..row)).start;
        let next = chunks.get(chunks.partition_point(|chunk| chunk.first < first));
        next.map_or(u64::MAX, |chunk| chunk.first / self.tiles_a_row() * self.tile[0])
    }

    /// The offset in the file of the first stored bytes of these rows; `None` if none is stored.
    fn first_offset(&self, array: &Array, rows: &Range<u64>) -> Option<u64> {
        match &array.place {
            ElementPlace::Chunked(_, chunks) => {
                let tiles = self.tiles(rows);
                let place = |number: u64| chunks.partition_point(|chunk| chunk.first < number);
                let first = chunks[place(tiles.start)..place(tiles.end)]
                    .iter()
                    .map(|chunk| chunk.offset)
                    .min();
                // A chunk without filters is read in parts.
                let inside = if self.is_plain {
                    rows.start % self.tile[0] * self.row() * self.size
                } else {
                    0
                };
                first.map(|offset| offset + inside)
            }
            ElementPlace::Contiguous(offset) => {
                offset.map(|offset| offset + rows.start * self.row() * self.size)
            }
            ElementPlace::Inline(_) | ElementPlace::Virtual(_) => None,
        }
    }

    /// The numbers of the tiles that hold these rows.
    fn tiles(&self, rows: &Range<u64>) -> Range<u64> {
        let band = self.tiles_a_row();
        rows.start / self.tile[0] * band..rows.end.div_ceil(self.tile[0]) * band
    }

    /// The number of tiles side by side.
    fn tiles_a_row(&self) -> u64 {
        let sizes = self.shape.iter().zip(&self.tile).skip(1);
        sizes.map(|(length, tile)| length.div_ceil(*tile)).product::<u64>().max(1)
    }

    /// Whether a tile's stored bytes are its elements.
    pub(super) fn is_plain(&self) -> bool {
        self.is_plain
    }

    /// The tiles that are stored, sorted by number. Of an array that is read by rows, these are
    /// the tiles with wanted elements.
    pub(super) fn stored<'a>(&self, array: &'a Array) -> Cow<'a, [Chunk]> {
        let one =
            |offset| Cow::Owned(vec![Chunk { first: 0, offset, size: array.bytes(), mask: 0 }]);
        match &array.place {
            ElementPlace::Chunked(_, chunks) => Cow::Borrowed(chunks),
            ElementPlace::Contiguous(None) => Cow::Borrowed(&[]),
            ElementPlace::Contiguous(Some(offset)) => one(*offset),
            ElementPlace::Inline(_) => one(0),
            ElementPlace::Virtual(_) => {
                let tile = |first| Chunk { first, offset: 0, size: 0, mask: 0 };
                Cow::Owned(self.wanted_tiles().map(tile).collect())
            }
        }
    }

    /// The numbers of the tiles of whole rows from the first with a wanted element to the last;
    /// of points, those that have any.
    fn wanted_tiles(&self) -> Box<dyn Iterator<Item = u64> + '_> {
        match &self.picks {
            Picks::Slabs(slabs) => {
                let span = slabs.first().and_then(|slab| slab.within(0..self.shape[0]));
                Box::new(self.tiles(&span.unwrap_or_default()))
            }
            Picks::Points(points) => {
                Box::new(points.chunk_by(|a, b| a.tile == b.tile).map(|points| points[0].tile))
            }
        }
    }

    /// Rows of the array in a tile of whole rows.
    pub(super) fn rows(&self, tile: u64) -> Range<u64> {
        tile * self.tile[0]..((tile + 1) * self.tile[0]).min(self.shape[0])
    }

    /// Merges each dimension into the one before it if no tile divides it and all of it is wanted.
    fn merge(&mut self) {
        let Picks::Slabs(slabs) = &mut self.picks else { return };
        let mut kept = 0;
        for next in 0..slabs.len() {
            let length = self.shape[next];
            let tile = self.tile[next];
            let slab = slabs[next];
            if next > 0 && tile == length && slab.is_whole(length) {
                self.shape[kept - 1] *= length;
                self.tile[kept - 1] *= length;
                slabs[kept - 1] = slabs[kept - 1].scaled(length);
            } else {
                (self.shape[kept], self.tile[kept], slabs[kept]) = (length, tile, slab);
                kept += 1;
            }
        }
        self.shape.truncate(kept);
        self.tile.truncate(kept);
        slabs.truncate(kept);
    }

    /// The number of selected elements.
    pub(super) fn elements(&self) -> u64 {
        match &self.picks {
            Picks::Slabs(slabs) => slabs.iter().map(Slab::len).product(),
            Picks::Points(points) => points.len() as u64,
        }
    }

    /// Bytes of the selected elements.
    pub(super) fn bytes(&self) -> u64 {
        self.size * self.elements()
    }

    /// Bytes of an element.
    pub(super) fn element(&self) -> u64 {
        self.size
    }

    /// Bytes of a decoded tile.
    pub(super) fn tile_bytes(&self) -> u64 {
        self.tile.iter().fold(self.size, |bytes, &length| bytes.saturating_mul(length))
    }

    /// Bytes from the start of a decoded tile to the end of its last element inside the array.
    pub(super) fn needed_bytes(&self, tile: u64) -> u64 {
        let mut last = 0;
        let mut stride = 1;
        for (dimension, origin, range) in self.area(tile, 0) {
            last += (range.end - origin).saturating_sub(1) * stride;
            stride *= self.tile[dimension];
        }
        (last + 1) * self.size
    }

    /// The entries to fetch from these tiles, which are sorted, and whether they hold all wanted
    /// elements.
    pub(super) fn entries(&self, stored: &[Chunk]) -> (Vec<TileEntry>, bool) {
        match &self.picks {
            Picks::Slabs(slabs) => self.parts(stored, slabs),
            Picks::Points(points) => self.points(stored, points),
        }
    }

    fn parts(&self, stored: &[Chunk], slabs: &[Slab]) -> (Vec<TileEntry>, bool) {
        let mut entries = Vec::new();
        let mut tiles = 0;
        let wanted =
            slabs.iter().zip(&self.tile).map(|(slab, tile)| tiles_of(slab, *tile)).product::<u64>();
        let span = slabs.first().and_then(|slab| slab.within(0..self.shape[0]));
        let Some(span) = span.filter(|_| wanted > 0) else { return (entries, true) };
        let Range { start, end } = self.tiles(&span);
        let place = |number: u64| stored.partition_point(|chunk| chunk.first < number);
        let whole = self.part == self.tile;
        for chunk in &stored[place(start)..place(end)] {
            let before = entries.len();
            for number in self.parts_of(chunk.first, &span) {
                let Some((low, high)) = self.span(chunk.first, number, slabs) else { continue };
                let (from, stored) = if whole {
                    (0, chunk.offset..chunk.offset + chunk.size)
                } else {
                    (low, chunk.offset + low * self.size..chunk.offset + high * self.size)
                };
                entries.push(TileEntry {
                    tile: chunk.first,
                    mask: chunk.mask,
                    stored,
                    content: Content::Part { number, from },
                });
            }
            tiles += u64::from(entries.len() > before);
        }
        (entries, tiles == wanted)
    }

    /// The numbers of a tile's parts that hold these rows.
    fn parts_of(&self, tile: u64, rows: &Range<u64>) -> Range<u64> {
        let sizes = self.tile.iter().zip(&self.part).skip(1);
        let inner: u64 = sizes.map(|(tile, part)| tile.div_ceil(*part)).product();
        let origin = tile / self.tiles_a_row() * self.tile[0];
        let start = rows.start.saturating_sub(origin) / self.part[0];
        let end = rows.end.saturating_sub(origin).min(self.tile[0]).div_ceil(self.part[0]);
        start * inner..end * inner
    }

    fn points(&self, stored: &[Chunk], points: &[Point]) -> (Vec<TileEntry>, bool) {
        let whole = self.part == self.tile;
        let part: u64 = self.part.iter().product();
        let mut entries = Vec::new();
        let mut found = 0;
        let mut at = 0;
        while let Some(first) = points.get(at) {
            let near =
                |point: &Point| point.tile == first.tile && (whole || point.at - first.at < part);
            let count = points[at..].iter().take_while(|point| near(point)).count();
            let which = at..at + count;
            let last = points[at + count - 1].at;
            at += count;
            let Ok(place) = stored.binary_search_by_key(&first.tile, |chunk| chunk.first) else {
                continue;
            };
            found += count;
            let chunk = stored[place];
            let (from, stored) = if whole {
                (0, chunk.offset..chunk.offset + chunk.size)
            } else {
                (
                    first.at,
                    chunk.offset + first.at * self.size..chunk.offset + (last + 1) * self.size,
                )
            };
            entries.push(TileEntry {
                tile: chunk.first,
                mask: chunk.mask,
                stored,
                content: Content::Points { which, from },
            });
        }
        (entries, found == points.len())
    }

    /// For each dimension, the last first: the number of the dimension, the element of the array
    /// where the tile begins, and the elements of the array that the tile's part holds.
    fn area(&self, mut tile: u64, mut part: u64) -> impl Iterator<Item = (usize, u64, Range<u64>)> {
        let mut dimension = self.shape.len();
        std::iter::from_fn(move || {
            dimension = dimension.checked_sub(1)?;
            let length = self.shape[dimension];
            let size = self.tile[dimension];
            let cut = self.part[dimension];
            let tiles = length.div_ceil(size);
            let parts = size.div_ceil(cut);
            let origin = tile % tiles * size;
            let inside = part % parts * cut;
            (tile, part) = (tile / tiles, part / parts);
            let end = (origin + size.min(inside + cut)).min(length);
            Some((dimension, origin, origin + inside..end.max(origin + inside)))
        })
    }

    /// The first wanted element of a tile's part and the end of the last, counted in the tile;
    /// `None` if none is wanted.
    fn span(&self, tile: u64, part: u64, slabs: &[Slab]) -> Option<(u64, u64)> {
        let mut low = 0;
        let mut high = 0;
        let mut stride = 1;
        for (dimension, origin, range) in self.area(tile, part) {
            let wanted = slabs[dimension].within(range)?;
            low += (wanted.start - origin) * stride;
            high += (wanted.end - 1 - origin) * stride;
            stride *= self.tile[dimension];
        }
        Some((low, high + 1))
    }

    /// The range of the output, in bytes, that a whole tile fills, if its elements stay together.
    pub(super) fn whole(&self, entry: &TileEntry) -> Option<Range<usize>> {
        let (Picks::Slabs(slabs), Content::Part { number: 0, from: 0 }) =
            (&self.picks, &entry.content)
        else {
            return None;
        };
        let ([slab], [length], [tile]) = (&slabs[..], &self.shape[..], &self.tile[..]) else {
            return None;
        };
        let first = entry.tile * tile;
        let (at, to, count) = slab.runs(first..(first + tile).min(*length)).next()?;
        let place = (to * self.size) as usize;
        (at == first && count == *tile).then(|| place..place + (count * self.size) as usize)
    }

    /// Copies the wanted elements of an entry from its decoded `bytes` to their places in the
    /// buffer, and makes them little-endian. Returns their number.
    ///
    /// # Safety
    /// No other thread uses these elements of the buffer during the call.
    #[allow(unsafe_code)]
    pub(super) unsafe fn place(
        &self,
        entry: &TileEntry,
        bytes: &[u8],
        dtype: &Dtype,
        buffer: &SharedBuffer,
    ) -> u64 {
        let size = self.size as usize;
        let mut placed = 0;
        let mut put = |from: u64, to: u64, count: u64| {
            placed += count;
            let from = from as usize * size;
            let len = count as usize * size;
            // SAFETY: the caller's promise.
            let out = unsafe { buffer.part(to as usize * size, len) };
            out.copy_from_slice(&bytes[from..from + len]);
            dtype.to_little_endian(out);
        };
        match (&entry.content, &self.picks) {
            (Content::Points { which, from }, Picks::Points(points)) => {
                points[which.clone()].iter().for_each(|point| put(point.at - from, point.to, 1));
            }
            (Content::Part { number, from }, Picks::Slabs(slabs)) => {
                self.copy(entry.tile, *number, *from, slabs, put);
            }
            _ => {}
        }
        placed
    }

    /// Calls `put` for each run of wanted elements of a tile's part: where the run begins, counted
    /// from the tile's element `from`, where it goes in the output, and how long it is.
    fn copy(
        &self,
        tile: u64,
        part: u64,
        from: u64,
        slabs: &[Slab],
        mut put: impl FnMut(u64, u64, u64),
    ) {
        // For each dimension, the last first: its runs, and its strides in the tile and in the
        // output.
        let mut runs = Vec::new();
        let mut stride = 1;
        let mut out = 1;
        for (dimension, origin, range) in self.area(tile, part) {
            let slab = slabs[dimension];
            let here =
                slab.runs(range).map(|(at, to, count)| ((at - origin) * stride, to * out, count));
            runs.push((here.collect::<Vec<_>>(), stride, out));
            stride *= self.tile[dimension];
            out *= slab.len();
        }
        let Some(((inner, ..), outer)) = runs.split_first() else { return };
        // For each other dimension: the number of the current run, and of the current element in
        // it.
        let mut at = vec![(0, 0); outer.len()];
        if inner.is_empty() || outer.iter().any(|(runs, ..)| runs.is_empty()) {
            return;
        }
        loop {
            let mut source = 0;
            let mut target = 0;
            for (&(run, element), (runs, stride, out)) in at.iter().zip(outer) {
                source += runs[run].0 + element * stride;
                target += runs[run].1 + element * out;
            }
            for &(begin, to, count) in inner {
                put(source + begin - from, target + to, count);
            }
            let next = at.iter_mut().zip(outer).position(|(at, (runs, ..))| {
                at.1 += 1;
                if at.1 == runs[at.0].2 {
                    *at = (at.0 + 1, 0);
                }
                let more = at.0 < runs.len();
                if !more {
                    *at = (0, 0);
                }
                more
            });
            if next.is_none() {
                return;
            }
        }
    }
}

/// See [`Grid::fill`].
fn wanted_fill(array: &Array, selection: &Selection) -> Vec<u8> {
    let mut fill = array.fill.clone();
    array.dtype.to_little_endian(&mut fill);
    let size = array.dtype.size();
    if fill.len() <= size {
        return fill;
    }
    let parts = (fill.len() / size) as u64;
    // The last dimensions are those of the array type.
    let number = |number: u64, (&x, &length): (&u64, &u64)| (number * length + x) % parts;
    let wanted: Vec<u64> = match selection {
        Selection::All => return fill,
        Selection::Slab(slabs) if slabs.is_empty() => return fill,
        Selection::Elements(elements) => (elements.start..elements.start + parts).collect(),
        Selection::Points(points) => {
            points.iter().map(|point| point.iter().zip(&array.shape).fold(0, number)).collect()
        }
        Selection::Slab(slabs) => {
            let mut wanted = vec![0];
            let mut inner = 1;
            for (slab, &length) in slabs.iter().zip(&array.shape).rev() {
                if inner == parts {
                    break;
                }
                let runs = slab.runs(0..length);
                let here = runs.flat_map(|(at, _, count)| at..at + count);
                wanted = here.flat_map(|x| wanted.iter().map(move |y| x * inner + y)).collect();
                inner *= length;
            }
            wanted
        }
    };
    let element = |number: u64| fill.chunks(size).nth((number % parts) as usize);
    wanted.into_iter().filter_map(element).flatten().copied().collect()
}

/// Rows of a virtual array are read together up to so many pieces: each tile takes a run.
const VIRTUAL_PIECES: u64 = 16;

/// Elements of a tile in each dimension. An array in one run has one tile. A tile of an array that
/// is read by rows holds rows of about `piece` bytes in all, or of some pieces.
fn tile_of(array: &Array, piece: u64) -> Vec<u64> {
    let mut tile: Vec<u64> = match &array.place {
        ElementPlace::Chunked(chunk, _) => chunk.clone(),
        // At least 1, because lengths are divided by it, in an empty array too.
        ElementPlace::Contiguous(_) | ElementPlace::Inline(_) | ElementPlace::Virtual(_) => {
            array.shape.iter().map(|&n| n.max(1)).collect()
        }
    };
    let together = match array.place {
        ElementPlace::Virtual(_) => piece * VIRTUAL_PIECES,
        _ => return tile,
    };
    if let Some(rows) = tile.first_mut() {
        *rows = (together / (array.bytes() / *rows).max(1)).clamp(1, *rows);
    }
    tile
}

/// The number of tiles of a dimension that hold wanted elements.
fn tiles_of(slab: &Slab, tile: u64) -> u64 {
    let mut count = 0;
    let mut from = 0;
    if slab.step <= tile {
        // Every tile between the first and the last holds wanted elements.
        return slab
            .within(0..u64::MAX)
            .map_or(0, |span| (span.end - 1) / tile - span.start / tile + 1);
    }
    while let Some(at) = slab.first_from(from) {
        count += 1;
        from = (at / tile + 1) * tile;
    }
    count
}
