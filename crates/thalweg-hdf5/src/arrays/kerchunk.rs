//! A file's extents as a kerchunk reference set, version 1. With the set, a reader opens the file
//! as a Zarr store (version 2), without HDF5.

use std::collections::{BTreeSet, HashMap};

use serde_json::{Map, Value as Json, json};
use thalweg_io::{Error, Result};

use super::{ArrayFile, Dataset};
use crate::array::{Array, ElementPlace, Found};
use crate::filter::{Contexts, Filter};
use crate::metadata::Node;
use crate::types::{Chunk, Value};

/// The only chunk or run of a dataset is written into the set itself if it has at most this many
/// bytes.
const INLINE: u64 = 500;

/// Attributes that store HDF5's dimension scales. In the set, [`DIMENSIONS`] takes their place.
const OF_SCALES: [&str; 5] = ["CLASS", "NAME", "DIMENSION_LIST", "REFERENCE_LIST", "_Netcdf4Dimid"];
const DIMENSIONS: &str = "_ARRAY_DIMENSIONS";

/// A reference set.
#[derive(Debug)]
pub struct References {
    /// The set, as kerchunk writes it.
    pub set: Json,
    /// The number of arrays in the set.
    pub arrays: usize,
    /// Objects that the references leave out, and why: `/path: reason`.
    pub left_out: Vec<String>,
}

/// A reference set while it is built.
#[derive(Default)]
struct ReferenceSet {
    refs: Map<String, Json>,
    left_out: Vec<String>,
}

impl ArrayFile {
    /// The file's arrays as references to `url`, by which readers open the file.
    ///
    /// # Errors
    /// The first defect; [`Error::Cancelled`].
    pub fn references(&self, url: &str) -> Result<References> {
        let datasets = self.datasets()?;
        let names: HashMap<u64, &str> =
            datasets.iter().map(|dataset| (dataset.node.address(), dataset.path())).collect();
        let mut made = ReferenceSet::default();
        let mut arrays = 0;
        let mut groups = BTreeSet::from([String::new()]);
        for dataset in &datasets {
            self.options.control.check()?;
            match self.array_references(dataset, url)? {
                Ok(refs) => {
                    arrays += 1;
                    made.refs.extend(refs);
                    let path = dataset.path().trim_start_matches('/');
                    groups.extend(path.match_indices('/').map(|(at, _)| path[..at].to_owned()));
                    let attributes = made.attributes(&dataset.node, Some(&names))?;
                    made.refs.insert(format!("{path}/.zattrs"), attributes.to_string().into());
                }
                Err(why) => made.left_out.push(format!("{}: {why}", dataset.path())),
            }
        }
        for group in groups {
            let mut node = self.file.root();
            for name in group.split('/').filter(|name| !name.is_empty()) {
                let child = node.child(name)?;
                node = child.ok_or_else(|| Error::NotFound {
                    file: self.store.name().clone(),
                    what: format!("group /{group}").into(),
                    advice: "the file changes; try again".into(),
                })?;
            }
            let key = |name: &str| {
                if group.is_empty() { name.to_owned() } else { format!("{group}/{name}") }
            };
            made.refs.insert(key(".zgroup"), json!({ "zarr_format": 2 }).to_string().into());
            let attributes = made.attributes(&node, None)?;
            made.refs.insert(key(".zattrs"), attributes.to_string().into());
        }
        Ok(References {
            set: json!({ "version": 1, "refs": made.refs }),
            arrays,
            left_out: made.left_out,
        })
    }

    /// The references of a dataset, or why there are none.
    fn array_references(
        &self,
        dataset: &Dataset,
        url: &str,
    ) -> Result<Result<Map<String, Json>, String>> {
        let array = match &dataset.found {
            Found::Array(array) => array,
            Found::Other(what) => return Ok(Err(what.clone())),
        };
        let Some(dtype) = array.dtype.stored_name() else {
            return Ok(Err(format!(
                "elements of {} that numpy has no name for as they are stored",
                array.dtype
            )));
        };
        if let Some(conversion) = array.pipeline.conversion() {
            return Ok(Err(format!(
                "{conversion}, which numpy has no name for as they are stored"
            )));
        }
        let filters =
            match array.pipeline.0.iter().map(numcodecs).collect::<Result<Vec<Json>, String>>() {
                Ok(filters) => filters,
                Err(what) => {
                    return Ok(Err(format!("the filter {what}, which numcodecs does not have")));
                }
            };
        let path = dataset.path().trim_start_matches('/');
        let mut refs = Map::new();
        let mut chunks = array.shape.clone();
        let whole = if array.shape.is_empty() {
            "0".to_owned()
        } else {
            vec!["0"; array.shape.len()].join(".")
        };
        match &array.place {
            _ if array.fill.len() > array.dtype.size() => {
                return Ok(Err("a fill value whose parts differ".into()));
            }
            ElementPlace::Virtual(_) => return Ok(Err("a virtual dataset".into())),
            ElementPlace::Inline(_) | ElementPlace::Contiguous(_) if array.is_empty() => {}
            ElementPlace::Contiguous(None) => {}
            ElementPlace::Inline(bytes) => {
                refs.insert(format!("{path}/{whole}"), inline(bytes));
            }
            ElementPlace::Contiguous(Some(offset)) => {
                match self.run_reference(dataset, *offset, array.bytes(), url)? {
                    Ok(reference) => refs.insert(format!("{path}/{whole}"), reference),
                    Err(why) => return Ok(Err(why)),
                };
            }
            ElementPlace::Chunked(_, stored) if stored.iter().any(|chunk| chunk.mask != 0) => {
                return Ok(Err("chunks that skipped filters".into()));
            }
            ElementPlace::Chunked(chunk, stored) if self.ends_early(array, chunk, stored)? => {
                return Ok(Err("a chunk that ends with the dataset, before its own end".into()));
            }
            ElementPlace::Chunked(chunk, stored) => {
                chunks.clone_from(chunk);
                for one in stored {
                    let reference = match one.size {
                        ..=INLINE if stored.len() == 1 => self.stored(one.offset, one.size)?,
                        _ => json!([url, one.offset, one.size]),
                    };
                    refs.insert(format!("{path}/{}", key(array, chunk, one)), reference);
                }
            }
        }
        chunks.iter_mut().for_each(|length| *length = (*length).max(1));
        let about = json!({
            "zarr_format": 2,
            "shape": array.shape,
            "chunks": chunks,
            "dtype": dtype,
            "fill_value": fill_value(array),
            "order": "C",
            "compressor": null,
            "filters": if filters.is_empty() { Json::Null } else { filters.into() },
        });
        refs.insert(format!("{path}/.zarray"), about.to_string().into());
        Ok(Ok(refs))
    }

    /// Whether the last chunk holds the elements of the dataset alone, and not what of the chunk
    /// lies outside of it. libhdf5 reads such chunks, and zarr does not. They are decoded only in
    /// this one place, so that references are quick to make.
    fn ends_early(&self, array: &Array, chunk: &[u64], stored: &[Chunk]) -> Result<bool> {
        let Some(last) = stored.iter().max_by_key(|chunk| chunk.first) else { return Ok(false) };
        let reaches_outside =
            array.shape.iter().zip(chunk).any(|(length, chunk)| !length.is_multiple_of(*chunk));
        let bytes = chunk.iter().product::<u64>().saturating_mul(array.dtype.size() as u64);
        let fits = last.size.max(bytes) <= self.options.budget.memory as u64;
        if array.pipeline.0.is_empty() || !reaches_outside || !fits {
            return Ok(false);
        }
        let mut coded = vec![0; last.size as usize];
        self.store.read_at(last.offset, &mut coded)?;
        let mut contexts = Contexts::default();
        let (pipeline, bytes) = (&array.pipeline, bytes as usize);
        // A damaged chunk is not this one's concern.
        let is_short = contexts.undo(pipeline, last.mask, &coded, bytes).is_err();
        Ok(is_short && contexts.undo_needed(pipeline, last.mask, &coded, 0, bytes).is_ok())
    }

    /// The reference of values that lie in one run, or why there is none.
    fn run_reference(
        &self,
        dataset: &Dataset,
        offset: u64,
        bytes: u64,
        url: &str,
    ) -> Result<Result<Json, String>> {
        Ok(Ok(match &self.elsewhere(dataset)[..] {
            [] if bytes <= INLINE => self.stored(offset, bytes)?,
            [] => json!([url, offset, bytes]),
            [one] if one.len == bytes => match one.path.to_str() {
                Some(path) => json!([path, one.offset, one.len]),
                None => return Ok(Err("values in a file whose path is not UTF-8".into())),
            },
            pieces => {
                return Ok(Err(format!("values in {} pieces of other files", pieces.len())));
            }
        }))
    }

    fn stored(&self, offset: u64, size: u64) -> Result<Json> {
        let mut bytes = vec![0; size as usize];
        self.store.read_at(offset, &mut bytes)?;
        Ok(inline(&bytes))
    }
}

impl ReferenceSet {
    /// The attributes of an object as JSON. Attributes that JSON cannot hold are listed in
    /// `left_out`.
    fn attributes(&mut self, node: &Node, names: Option<&HashMap<u64, &str>>) -> Result<Json> {
        let mut attributes = Map::new();
        let all = match node.attributes() {
            Ok(all) => all,
            Err(Error::Cancelled) => return Err(Error::Cancelled),
            Err(error) => {
                self.left_out.push(format!("{}: its attributes: {error}", node.path()));
                return Ok(attributes.into());
            }
        };
        let is_scale = all.iter().any(|(name, value)| {
            name == "CLASS" && *value == Value::Text("DIMENSION_SCALE".into())
        });
        let has_scales = all.iter().any(|(name, _)| name == "DIMENSION_LIST");
        for (name, value) in all {
            if (is_scale || has_scales) && OF_SCALES.contains(&&*name) {
                continue;
            }
            let json_value = match value {
                Value::Signed(value, _) => value.into(),
                Value::Unsigned(value, _) => value.into(),
                Value::Float(value, _) => number(value),
                Value::Text(value) => value.into(),
                Value::Enum(code, _) => code.into(),
                Value::Other(what) => {
                    self.left_out.push(format!("{}: the attribute {name:?}: {what}", node.path()));
                    continue;
                }
            };
            attributes.insert(name, json_value);
        }
        let last = |path: &str| path.rsplit('/').next().unwrap_or_default().to_owned();
        let Some(names) = names else { return Ok(attributes.into()) };
        if has_scales {
            let scales = node.dimension_scales()?;
            let named: Option<Vec<String>> =
                scales.iter().map(|scale| Some(last(names.get(scale.as_ref()?)?))).collect();
            if let Some(named) = named.filter(|named| !named.is_empty()) {
                attributes.insert(DIMENSIONS.into(), named.into());
            }
        } else if is_scale {
            attributes.insert(DIMENSIONS.into(), json!([last(node.path())]));
        }
        Ok(attributes.into())
    }
}

/// A chunk's key: its place in the grid.
fn key(array: &Array, chunk: &[u64], one: &Chunk) -> String {
    let mut number = one.first;
    let mut places = Vec::new();
    for (length, part) in array.shape.iter().zip(chunk).rev() {
        let count = length.div_ceil(*part).max(1);
        places.push((number % count).to_string());
        number /= count;
    }
    places.reverse();
    if places.is_empty() { "0".into() } else { places.join(".") }
}

/// The configuration of a filter for numcodecs; the error is the name of a filter that numcodecs
/// does not have.
fn numcodecs(filter: &Filter) -> Result<Json, String> {
    Ok(match filter {
        Filter::Deflate => json!({ "id": "zlib", "level": 1 }),
        Filter::Shuffle(size) => json!({ "id": "shuffle", "elementsize": size }),
        Filter::Fletcher32 => json!({ "id": "fletcher32" }),
        Filter::Zstd => json!({ "id": "zstd", "level": 1 }),
        Filter::Bzip2 => json!({ "id": "bz2", "level": 9 }),
        Filter::Blosc => {
            json!({ "id": "blosc", "cname": "lz4", "clevel": 5, "shuffle": 1, "blocksize": 0 })
        }
        other => return Err(other.to_string()),
    })
}

fn number(value: f64) -> Json {
    match value {
        value if value.is_nan() => "NaN".into(),
        f64::INFINITY => "Infinity".into(),
        f64::NEG_INFINITY => "-Infinity".into(),
        value => value.into(),
    }
}

/// The fill value in Zarr's JSON form.
fn fill_value(array: &Array) -> Json {
    let size = array.dtype.size();
    let mut bytes = if array.fill.len() == size { array.fill.clone() } else { vec![0; size] };
    array.dtype.to_little_endian(&mut bytes);
    let wide = |bytes: &[u8]| {
        let mut word = [0; 8];
        word[..bytes.len().min(8)].copy_from_slice(&bytes[..bytes.len().min(8)]);
        u64::from_le_bytes(word)
    };
    let float = |bytes: &[u8]| match bytes.len() {
        4 => number(f32::from_bits(wide(bytes) as u32).into()),
        8 => number(f64::from_bits(wide(bytes))),
        _ => Json::Null,
    };
    match array.dtype.kind() {
        'b' => (bytes[0] != 0).into(),
        'u' => wide(&bytes).into(),
        'i' | 'M' | 'm' => {
            let unused = 64 - 8 * size.min(8) as u32;
            ((wide(&bytes) << unused).cast_signed() >> unused).into()
        }
        'f' => float(&bytes),
        'c' => json!([float(&bytes[..size / 2]), float(&bytes[size / 2..])]),
        _ => base64(&bytes).into(),
    }
}

fn inline(bytes: &[u8]) -> Json {
    format!("base64:{}", base64(bytes)).into()
}

/// The base64 encoding of RFC 4648, section 4.
fn base64(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut text = String::with_capacity(bytes.len().div_ceil(3) * 4);
    for group in bytes.chunks(3) {
        let word = group.iter().fold(0u32, |word, &byte| word << 8 | u32::from(byte))
            << (8 * (3 - group.len()));
        for place in 0..4 {
            let digit = DIGITS[(word >> (18 - 6 * place) & 63) as usize];
            text.push(if place <= group.len() { char::from(digit) } else { '=' });
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::base64;

    #[test]
    fn base64_is_that_of_the_rfc() {
        let known = [
            ("", ""),
            ("f", "Zg=="),
            ("fo", "Zm8="),
            ("foo", "Zm9v"),
            ("foob", "Zm9vYg=="),
            ("foobar", "Zm9vYmFy"),
        ];
        for (bytes, text) in known {
            assert_eq!(base64(bytes.as_bytes()), text);
        }
    }
}
