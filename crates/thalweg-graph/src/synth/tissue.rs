//! Which neurons pass each astrocyte's domain, and which of their synapses are in it.
//!
//! A neuron reaches the cells of a block around its own. For each of these cells, a hash
//! determines whether the neuron passes it and with how many synapses; both sides compute the same
//! hash. A neuron's synapses in a cell have consecutive numbers, which a permutation of the neuron
//! maps to ids.

use thalweg_codec::splitmix::{STEP, mix};
use thalweg_io::random::{hash01, quantile};
use thalweg_io::{Error, Result};

use super::CircuitRecipe;

/// How many cells a neuron reaches along each axis, including its own.
const REACH: usize = 7;
/// The standard deviation of how far a neuron reaches, in cells.
const SPREAD: f64 = 2.0;
/// One of 50 cells is empty.
const EMPTY: u64 = 50;

/// The targets for the neurons of an astrocyte: mean, standard deviation, least and most.
const MEAN: f64 = 1_251.0;
const DEVIATION: f64 = 430.0;
const LEAST: f64 = 18.0;
const MOST: f64 = 2_871.0;
/// How many neurons reach an astrocyte's cell in a large circuit.
const REACHING: f64 = 343.0 * 219_422.0 / 14_400.0;
/// The mean synapses of an astrocyte, and the exponent by which the synapses of a neuron grow with
/// the number of neurons, fitted to the published maxima.
const SYNAPSES: f64 = 16_201.0;
const GROWTH: f64 = 0.668;

/// Cells between two stored sums of synapses.
const BLOCK: usize = 16;
/// Entries in the table of an exponential distribution.
const KINDS: usize = 1 << 10;
/// The scale of fixed-point numbers: 16 fractional bits.
const FIXED: f64 = 65_536.0;
/// The value for a cell without an astrocyte.
const NOBODY: u32 = u32::MAX;

/// Computes the lists of a circuit. Threads can share it.
#[derive(Debug)]
pub struct SynthNetwork {
    recipe: CircuitRecipe,
    grid: CellGrid,
    /// The astrocyte of each cell, and the cell of each astrocyte.
    astrocytes: Vec<u32>,
    cells: Vec<u32>,
    /// The cell of each neuron; the neurons cell by cell, and where each cell's begin.
    homes: Vec<u32>,
    neurons: Vec<u32>,
    firsts: Vec<u32>,
    /// For each cell: the probability factor that a neuron passes it, and how many synapses after
    /// the first the neuron then has on average.
    size: Vec<u32>,
    more: Vec<u32>,
    /// An exponential distribution.
    kinds: Vec<u32>,
    /// The first synapse of each neuron, and how many there are before each block of cells that it
    /// reaches.
    synapses: Vec<u64>,
    before: Vec<u32>,
    /// Synapses and neurons of each astrocyte.
    counts: Vec<[u32; 2]>,
}

/// Cells in three dimensions, and the block of them that a neuron reaches.
#[derive(Debug)]
struct CellGrid {
    dims: [usize; 3],
    reach: [usize; 3],
    /// How likely a neuron passes each cell of the block.
    weights: Vec<u32>,
    /// For each dimension, place and step: the place where the step ends (`to`) or begins (`from`),
    /// as a part of a cell's number.
    to: [Vec<u32>; 3],
    from: [Vec<u32>; 3],
    /// For each cell of the block, its three steps.
    steps: Vec<[u8; 3]>,
}

impl CellGrid {
    fn new(cells: u64) -> Self {
        let side = (1..).take_while(|side: &u64| side * side * side <= cells).last().unwrap_or(1);
        let dims = [side, side, cells.div_ceil(side * side)].map(|dim| dim as usize);
        let reach = dims.map(|dim| dim.min(REACH));
        let strides = [1, dims[0], dims[0] * dims[1]];
        let lead = |is_back: bool| {
            [0, 1, 2].map(|axis| {
                let dim = dims[axis];
                let reach = reach[axis];
                let middle = reach / 2;
                let place = |at: usize, step: usize| {
                    if is_back {
                        (at + dim + middle - step) % dim
                    } else {
                        (at + dim + step - middle) % dim
                    }
                };
                let places = (0..dim).flat_map(|at| (0..reach).map(move |step| place(at, step)));
                places.map(|place| (place * strides[axis]) as u32).collect::<Vec<_>>()
            })
        };
        let mut steps = Vec::new();
        let mut weights = Vec::new();
        for z in 0..reach[2] {
            for y in 0..reach[1] {
                for x in 0..reach[0] {
                    let step = [x, y, z];
                    let far: f64 = [0, 1, 2]
                        .map(|axis| (step[axis] as f64 - (reach[axis] / 2) as f64).powi(2))
                        .iter()
                        .sum();
                    steps.push(step.map(|step| step as u8));
                    weights.push((FIXED * libm::exp(-far / (2.0 * SPREAD * SPREAD))) as u32);
                }
            }
        }
        Self { dims, reach, weights, to: lead(false), from: lead(true), steps }
    }

    fn len(&self) -> usize {
        self.dims.iter().product()
    }

    fn place(&self, cell: usize) -> [usize; 3] {
        let [x, y, _] = self.dims;
        [cell % x, cell / x % y, cell / (x * y)]
    }

    /// The targets of all steps from a cell, by dimension.
    fn rows<'a>(&self, tables: &'a [Vec<u32>; 3], cell: usize) -> [&'a [u32]; 3] {
        let place = self.place(cell);
        [0, 1, 2].map(|axis| &tables[axis][place[axis] * self.reach[axis]..][..self.reach[axis]])
    }
}

/// The target cell of a step.
#[inline(always)]
fn target_cell(rows: &[&[u32]; 3], step: [u8; 3]) -> usize {
    (rows[0][step[0] as usize] + rows[1][step[1] as usize] + rows[2][step[2] as usize]) as usize
}

impl SynthNetwork {
    /// Checks the recipe and computes its tables: half a second and 25 MB for the default circuit.
    ///
    /// # Errors
    /// [`Error::Usage`] for a recipe that is not possible.
    pub fn new(recipe: CircuitRecipe) -> Result<Self> {
        Self::stoppable(recipe, &|| false)
    }

    /// [`SynthNetwork::new`], unless `stopped` returns true meanwhile: the largest circuit takes a
    /// quarter of a minute.
    ///
    /// # Errors
    /// Those of [`SynthNetwork::new`]; [`Error::Cancelled`].
    pub fn stoppable(recipe: CircuitRecipe, stopped: &dyn Fn() -> bool) -> Result<Self> {
        recipe.check()?;
        let seed = recipe.seed;
        let room = recipe.room();
        let grid = CellGrid::new((room * EMPTY).div_ceil(EMPTY - 1));
        let mut network = Self {
            astrocytes: vec![NOBODY; grid.len()],
            cells: chosen(seed, grid.len(), room as usize),
            homes: (0..recipe.neurons).map(|neuron| home(&recipe, &grid, neuron)).collect(),
            neurons: Vec::new(),
            firsts: Vec::new(),
            size: vec![0; grid.len()],
            more: vec![0; grid.len()],
            kinds: (0..KINDS)
                .map(|i| (-FIXED * libm::log((i as f64 + 0.5) / KINDS as f64)) as u32)
                .collect(),
            synapses: Vec::with_capacity(recipe.neurons as usize + 1),
            before: Vec::with_capacity(recipe.neurons as usize * grid.steps.len().div_ceil(BLOCK)),
            counts: vec![[0; 2]; room as usize],
            grid,
            recipe,
        };
        for (astrocyte, cell) in (0..).zip(&network.cells) {
            network.astrocytes[*cell as usize] = astrocyte;
        }
        network.gather();
        network.sizes(stopped)?;
        network.count(stopped)?;
        Ok(network)
    }

    /// Groups the neurons by cell.
    fn gather(&mut self) {
        let mut firsts = vec![0_u32; self.grid.len() + 1];
        self.homes.iter().for_each(|home| firsts[*home as usize + 1] += 1);
        for cell in 0..self.grid.len() {
            firsts[cell + 1] += firsts[cell];
        }
        self.neurons = vec![0; self.homes.len()];
        let mut next = firsts.clone();
        for (neuron, home) in (0..).zip(&self.homes) {
            let at = &mut next[*home as usize];
            self.neurons[*at as usize] = neuron;
            *at += 1;
        }
        self.firsts = firsts;
    }

    /// Chooses the size of each domain so that the right number of neurons pass it.
    fn sizes(&mut self, stopped: &dyn Fn() -> bool) -> Result<()> {
        let reaching =
            self.recipe.neurons as f64 * self.grid.steps.len() as f64 / self.grid.len() as f64;
        // In a small tissue, fewer neurons are within reach.
        let scale = (reaching / REACHING).min(1.0);
        let wanted = |astrocyte: u64| {
            let normal = quantile(
                hash01(self.recipe.seed, u64::from_be_bytes(*b"the size"), astrocyte)
                    + f64::EPSILON / 4.0,
            );
            (MEAN + DEVIATION * normal).clamp(LEAST, MOST)
        };
        let each: Vec<f64> = (0..self.cells.len() as u64).map(wanted).collect();
        let power = |neurons: f64| libm::pow(neurons / MEAN, GROWTH);
        let all: f64 = each.iter().map(|neurons| neurons * power(*neurons)).sum();
        let per_neuron = SYNAPSES * each.len() as f64 / all;
        for (neurons, cell) in each.iter().zip(&self.cells) {
            if stopped() {
                return Err(Error::Cancelled);
            }
            let rows = self.grid.rows(&self.grid.from, *cell as usize);
            let near = self.grid.steps.iter().map(|step| {
                let home = target_cell(&rows, *step);
                f64::from(self.firsts[home + 1] - self.firsts[home])
            });
            let near: Vec<(f64, f64)> = self
                .grid
                .weights
                .iter()
                .map(|weight| f64::from(*weight) / FIXED)
                .zip(near)
                .collect();
            let passing = |size: f64| {
                near.iter().map(|(weight, count)| (weight * size).min(1.0) * count).sum::<f64>()
            };
            let mut low = 0.0;
            let mut high = 16.0;
            for _ in 0..24 {
                let middle = f64::midpoint(low, high);
                if passing(middle) < neurons * scale { low = middle } else { high = middle }
            }
            self.size[*cell as usize] = (high * FIXED) as u32;
            self.more[*cell as usize] =
                ((per_neuron * power(*neurons) - 1.0).max(0.0) * FIXED) as u32;
        }
        Ok(())
    }

    /// Numbers the synapses.
    fn count(&mut self, stopped: &dyn Fn() -> bool) -> Result<()> {
        let mut first = 0;
        self.synapses.push(0);
        for neuron in 0..self.homes.len() {
            if stopped() {
                return Err(Error::Cancelled);
            }
            let rows = self.grid.rows(&self.grid.to, self.homes[neuron] as usize);
            let key = self.key(neuron as u64);
            let mut own = 0;
            for (number, step) in self.grid.steps.iter().enumerate() {
                if number.is_multiple_of(BLOCK) {
                    self.before.push(own);
                }
                let cell = target_cell(&rows, *step);
                if let Some(count) = self.passes(key, number, cell) {
                    own += count;
                    let [synapses, neurons] = &mut self.counts[self.astrocytes[cell] as usize];
                    *synapses += count;
                    *neurons += 1;
                }
            }
            // Ids are permuted in pairs, so that each neuron needs an even number.
            first += u64::from(own.next_multiple_of(2));
            self.synapses.push(first);
        }
        Ok(())
    }

    fn key(&self, neuron: u64) -> u64 {
        mix(mix(self.recipe.seed ^ u64::from_be_bytes(*b"branches")).wrapping_add(neuron))
    }

    /// How many synapses a neuron has in a cell; `None` if it does not pass the cell. `number` is
    /// the cell's number among those that the neuron reaches.
    #[inline(always)]
    fn passes(&self, key: u64, number: usize, cell: usize) -> Option<u32> {
        let bits = mix(key.wrapping_add((number as u64).wrapping_mul(STEP)));
        if bits >> 32 >= u64::from(self.grid.weights[number]) * u64::from(self.size[cell]) {
            return None;
        }
        let kind = self.kinds[bits as usize % KINDS];
        // The fraction is rounded up or down at random.
        let more =
            u64::from(kind) * u64::from(self.more[cell]) + ((bits & 0xffff_ffff) >> 10 << 10);
        Some(1 + (more >> 32) as u32)
    }

    /// The recipe.
    pub fn recipe(&self) -> &CircuitRecipe {
        &self.recipe
    }

    /// The number of synapse ids, including those of synapses that belong to no astrocyte.
    pub fn synapses(&self) -> u64 {
        self.synapses.last().copied().unwrap_or(0)
    }

    /// How many synapses and neurons an astrocyte has.
    pub fn counts(&self, astrocyte: u64) -> [u64; 2] {
        self.counts.get(astrocyte as usize).map_or([0; 2], |counts| counts.map(u64::from))
    }

    /// How many synapses and neurons the astrocytes of the recipe have together.
    pub fn totals(&self) -> [u64; 2] {
        (0..self.recipe.astrocytes())
            .map(|astrocyte| self.counts(astrocyte))
            .fold([0; 2], |[a, b], [c, d]| [a + c, b + d])
    }

    /// Appends the synapses and the neurons of an astrocyte.
    pub fn astrocyte(&self, astrocyte: u64, synapses: &mut Vec<u64>, neurons: &mut Vec<u64>) {
        let Some(&cell) = self.cells.get(astrocyte as usize) else { return };
        let back = self.grid.rows(&self.grid.from, cell as usize);
        let mut passing: Vec<(u32, u16, u32)> = Vec::new();
        for (number, step) in self.grid.steps.iter().enumerate() {
            let home = target_cell(&back, *step);
            for &neuron in &self.neurons[self.firsts[home] as usize..self.firsts[home + 1] as usize]
            {
                if let Some(count) = self.passes(self.key(u64::from(neuron)), number, cell as usize)
                {
                    passing.push((neuron, number as u16, count));
                }
            }
        }
        passing.sort_unstable();
        for (neuron, number, count) in passing {
            neurons.push(u64::from(neuron));
            self.ids(neuron as usize, usize::from(number), count, synapses);
        }
    }

    /// Appends the synapses that a neuron has in one of the cells that it reaches.
    fn ids(&self, neuron: usize, number: usize, count: u32, out: &mut Vec<u64>) {
        let rows = self.grid.rows(&self.grid.to, self.homes[neuron] as usize);
        let key = self.key(neuron as u64);
        let blocks = self.grid.steps.len().div_ceil(BLOCK);
        let from = number - number % BLOCK;
        let before = (from..number)
            .filter_map(|at| self.passes(key, at, target_cell(&rows, self.grid.steps[at])))
            .sum::<u32>();
        let start = u64::from(self.before[neuron * blocks + number / BLOCK] + before);
        let first = self.synapses[neuron];
        let end = self.synapses[neuron + 1];
        let shuffle = Shuffle::new(key, (end - first) / 2);
        let mut known = (u64::MAX, 0);
        let ids = (start..start + u64::from(count)).map(|place| {
            if known.0 != place / 2 {
                known = (place / 2, shuffle.of(place / 2));
            }
            first + 2 * known.1 + place % 2
        });
        let own = out.len();
        out.extend(ids);
        out[own..].sort_unstable();
    }

    /// Appends the astrocytes of the recipe whose domains a neuron passes.
    pub fn neuron(&self, neuron: u64, astrocytes: &mut Vec<u64>) {
        let Some(&home) = self.homes.get(neuron as usize) else { return };
        let rows = self.grid.rows(&self.grid.to, home as usize);
        let key = self.key(neuron);
        let own = astrocytes.len();
        for (number, step) in self.grid.steps.iter().enumerate() {
            let cell = target_cell(&rows, *step);
            let astrocyte = u64::from(self.astrocytes[cell]);
            if astrocyte < self.recipe.astrocytes() && self.passes(key, number, cell).is_some() {
                astrocytes.push(astrocyte);
            }
        }
        astrocytes[own..].sort_unstable();
    }
}

/// The cell of a neuron's body: a random one in the neuron's layer.
fn home(recipe: &CircuitRecipe, grid: &CellGrid, neuron: u64) -> u32 {
    let [x, y, z] = grid.dims.map(|dim| dim as u64);
    let layer = neuron * z / recipe.neurons;
    let bits =
        mix(mix(recipe.seed ^ u64::from_be_bytes(*b"the body"))
            .wrapping_add(neuron.wrapping_mul(STEP)));
    (layer * x * y + bits % (x * y)) as u32
}

/// A random selection of `count` of `cells` cells.
fn chosen(seed: u64, cells: usize, count: usize) -> Vec<u32> {
    let key = mix(seed ^ u64::from_be_bytes(*b"a domain"));
    let mut all: Vec<(u64, u32)> = (0..cells as u32)
        .map(|cell| (mix(key.wrapping_add(u64::from(cell).wrapping_mul(STEP))), cell))
        .collect();
    all.sort_unstable();
    all.into_iter().take(count).map(|(_, cell)| cell).collect()
}

/// A permutation of the numbers below a limit.
struct Shuffle {
    key: u64,
    limit: u64,
    bits: u32,
}

impl Shuffle {
    fn new(key: u64, limit: u64) -> Self {
        Self { key, limit, bits: u64::BITS - limit.saturating_sub(1).leading_zeros() }
    }

    /// The image of a number. Each step is invertible, so that the steps permute the numbers of
    /// `bits` bits; they are repeated until the image is below the limit.
    #[inline(always)]
    fn of(&self, number: u64) -> u64 {
        let mask = (1_u64 << self.bits) - 1;
        let half = (self.bits / 2).max(1);
        let mut at = number;
        loop {
            at = at.wrapping_add(self.key) & mask;
            at ^= at >> half;
            at = at.wrapping_mul(self.key >> 20 | 1) & mask;
            at ^= at >> half;
            at = at.wrapping_mul(STEP) & mask;
            at ^= at >> half;
            if at < self.limit || self.limit == 0 {
                return at;
            }
        }
    }
}
