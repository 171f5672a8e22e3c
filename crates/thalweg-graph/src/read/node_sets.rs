//! Node sets of SONATA: a JSON file with selections of vertices by name.
//!
//! A node set is a rule, such as `{"layer": [2, 3], "mtype": {"$regex": "^L2"}}`, or a list of
//! names of other sets, of which it is the union. A vertex is in the set of a rule if all parts of
//! the rule hold. (SONATA developer guide, "Node Sets File".)

use std::cmp::Ordering;
use std::path::Path;
use std::sync::Arc;

use arrow_array::Array;
use arrow_array::cast::AsArray;
use arrow_schema::DataType;
use regex_lite::Regex;
use serde_json::{Map, Value};
use thalweg_io::cells::{Number, numbers, texts};
use thalweg_io::{Error, Fault, InFile, Result};

use crate::read::network::Network;

/// The node sets of a file.
#[derive(Debug, Clone)]
pub struct NodeSets {
    file: Arc<str>,
    sets: Map<String, Value>,
}

impl NodeSets {
    /// Reads a file of node sets.
    ///
    /// # Errors
    /// [`Error::Io`]; [`Error::Malformed`] for what is no JSON object.
    pub fn open(path: &Path) -> Result<Self> {
        let file: Arc<str> = path.to_string_lossy().into();
        let text = std::fs::read(path).map_err(|e| Error::io(&file, "reading", e))?;
        let sets = serde_json::from_slice(&text)
            .map_err(|e| malformed(&file, "node sets", e.to_string(), "a JSON object"))?;
        Ok(Self { file, sets })
    }

    /// The names of the sets.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.sets.keys().map(String::as_str)
    }

    /// The parts of a rule: attributes, and what is asked of each.
    fn rule(&self, name: &str, parts: &Map<String, Value>) -> Result<Vec<(String, Test)>> {
        if parts.is_empty() {
            return Err(self.wrong(name, "{}", "a part, such as {\"layer\": 2}"));
        }
        let test = |(of, wanted): (&String, &Value)| {
            let test = Test::parse(of, wanted);
            Ok((of.clone(), test.map_err(|expected| self.wrong(name, wanted, expected))?))
        };
        parts.iter().map(test).collect()
    }

    fn wrong(
        &self,
        name: &str,
        found: impl std::fmt::Display,
        expected: impl Into<std::borrow::Cow<'static, str>>,
    ) -> Error {
        malformed(&self.file, &format!("node set {name:?}"), found.to_string(), expected)
    }
}

fn malformed(
    file: &Arc<str>,
    what: &str,
    found: String,
    expected: impl Into<std::borrow::Cow<'static, str>>,
) -> Error {
    Fault::new(0, found, expected).in_file(file, 0, what.to_owned())
}

/// What a part of a rule asks of an attribute.
enum Test {
    /// The type of the vertices is one of these.
    Types(Vec<String>),
    /// The id is one of these.
    Ids(Vec<u64>),
    /// It is one of these numbers.
    Numbers(Vec<Number>),
    /// It is one of these texts.
    Texts(Vec<String>),
    /// Its order to a number is one of these.
    Order(&'static [Ordering], Number),
    /// The pattern is found in it.
    Pattern(Regex),
}

impl Test {
    /// What a value of the file asks of the attribute `of`; or what is expected in its place.
    fn parse(of: &str, wanted: &Value) -> std::result::Result<Self, String> {
        if let Value::Object(operation) = wanted {
            return Self::operation(operation);
        }
        let one = [wanted.clone()];
        let all = wanted.as_array().map_or(&one[..], Vec::as_slice);
        let each = |what: &str| format!("{what}, or a list of such");
        match of {
            "population" => {
                let names = all.iter().map(|name| Some(name.as_str()?.to_owned()));
                names.collect::<Option<_>>().map(Self::Types).ok_or_else(|| each("a name"))
            }
            "node_id" => {
                let ids = all.iter().map(Value::as_u64);
                ids.collect::<Option<_>>().map(Self::Ids).ok_or_else(|| each("an id"))
            }
            _ => {
                let numbers: Option<_> = all.iter().map(number).collect();
                let texts = || all.iter().map(|text| Some(text.as_str()?.to_owned()));
                numbers
                    .map(Self::Numbers)
                    .or_else(|| texts().collect::<Option<_>>().map(Self::Texts))
                    .ok_or_else(|| each("a number, or a text"))
            }
        }
    }

    fn operation(operation: &Map<String, Value>) -> std::result::Result<Self, String> {
        let expected = || "one operator: $regex, $gt, $gte, $lt or $lte".to_owned();
        let mut parts = operation.iter();
        let (Some((sign, value)), None) = (parts.next(), parts.next()) else {
            return Err(expected());
        };
        let orders: &[Ordering] = match sign.as_str() {
            "$regex" => {
                let pattern = value.as_str().ok_or("a text, as the pattern")?;
                return Regex::new(pattern).map(Self::Pattern).map_err(|e| {
                    format!("a pattern without look-around and references back ({e})")
                });
            }
            "$gt" => &[Ordering::Greater],
            "$gte" => &[Ordering::Greater, Ordering::Equal],
            "$lt" => &[Ordering::Less],
            "$lte" => &[Ordering::Less, Ordering::Equal],
            _ => return Err(expected()),
        };
        Ok(Self::Order(orders, number(value).ok_or("a number")?))
    }

    /// What the attribute has to be, if a column of this type is something else.
    fn misfit(&self, column: &DataType) -> Option<&'static str> {
        let is_number = column.is_numeric() || *column == DataType::Boolean;
        match self {
            Self::Types(_) | Self::Ids(_) => None,
            // An empty list fits all.
            Self::Numbers(wanted) if wanted.is_empty() => None,
            Self::Numbers(_) | Self::Order(..) => (!is_number).then_some("numbers"),
            Self::Texts(_) | Self::Pattern(_) => (*column != DataType::Utf8).then_some("text"),
        }
    }

    /// For which rows of a column the test holds.
    fn holds(&self, column: &dyn Array) -> Vec<bool> {
        let rows = 0..column.len();
        let is_single = *column.data_type() == DataType::Float32;
        let compared = |orders: &[Ordering], wanted: &[Number]| -> Vec<bool> {
            let number = number_of(column);
            let holds = |found: Number, one: &Number| {
                let one = if is_single { one.single() } else { *one };
                found.order(one).is_some_and(|order| orders.contains(&order))
            };
            let any = |found| wanted.iter().any(|one| holds(found, one));
            rows.clone().map(|row| number(row).is_some_and(any)).collect()
        };
        let text_is = |holds: &dyn Fn(&str) -> bool| -> Vec<bool> {
            let text = texts(column);
            rows.clone().map(|row| text(row).is_some_and(holds)).collect()
        };
        match self {
            Self::Types(_) | Self::Ids(_) => vec![true; rows.len()],
            Self::Numbers(wanted) => compared(&[Ordering::Equal], wanted),
            Self::Order(orders, wanted) => compared(orders, &[*wanted]),
            Self::Texts(wanted) => text_is(&|text| wanted.iter().any(|one| one == text)),
            Self::Pattern(pattern) => text_is(&|text| pattern.is_match(text)),
        }
    }
}

/// A number of the file; `true` is 1, as SONATA stores it.
fn number(value: &Value) -> Option<Number> {
    match value {
        Value::Bool(is_true) => Some(Number::Whole((*is_true).into())),
        Value::Number(number) => Number::parse(&number.to_string()),
        _ => None,
    }
}

/// The number of each row; that of `true` is 1.
fn number_of(column: &dyn Array) -> Box<dyn Fn(usize) -> Option<Number> + '_> {
    match column.as_boolean_opt() {
        Some(truths) => {
            Box::new(|row| truths.is_valid(row).then(|| Number::Whole(truths.value(row).into())))
        }
        None => numbers(column),
    }
}

impl Network {
    /// The vertices of a type that are in a node set: their ids, ascending. The type of a vertex is
    /// its population in SONATA.
    ///
    /// # Errors
    /// [`Error::NotFound`] for a set or an attribute that is not there; [`Error::Malformed`] for a
    /// set that is no rule, and one that contains itself; [`Error::Usage`] for a test that does not
    /// fit the attribute's type; else as [`Network::vertices`].
    pub fn node_set(&self, vertex_type: usize, sets: &NodeSets, name: &str) -> Result<Vec<u64>> {
        let mut ids = Vec::new();
        self.add_node_set(vertex_type, sets, name, &mut Vec::new(), &mut ids)?;
        ids.sort_unstable();
        ids.dedup();
        Ok(ids)
    }

    /// Adds the vertices of a set. `inside`: the sets that contain it.
    fn add_node_set<'a>(
        &self,
        vertex_type: usize,
        sets: &'a NodeSets,
        name: &'a str,
        inside: &mut Vec<&'a str>,
        ids: &mut Vec<u64>,
    ) -> Result<()> {
        let Some(set) = sets.sets.get(name) else {
            let names: Vec<&str> = sets.names().collect();
            return Err(Error::NotFound {
                file: sets.file.clone(),
                what: format!("a node set {name:?}").into(),
                advice: format!("there are {}", names.join(", ")).into(),
            });
        };
        match set {
            Value::Object(parts) => {
                ids.extend(self.rule(vertex_type, sets, name, &sets.rule(name, parts)?)?);
            }
            Value::Array(names) => {
                if inside.contains(&name) {
                    let round = format!("{} -> {name}", inside.join(" -> "));
                    return Err(sets.wrong(name, round, "sets that do not contain each other"));
                }
                inside.push(name);
                for part in names {
                    let part =
                        part.as_str().ok_or_else(|| sets.wrong(name, part, "a name of a set"))?;
                    self.add_node_set(vertex_type, sets, part, inside, ids)?;
                }
                inside.pop();
            }
            other => return Err(sets.wrong(name, other, "a rule, or a list of names of sets")),
        }
        Ok(())
    }

    /// The vertices for which all parts of a rule hold.
    fn rule(
        &self,
        vertex_type: usize,
        sets: &NodeSets,
        name: &str,
        parts: &[(String, Test)],
    ) -> Result<Vec<u64>> {
        let of = &self.types()[vertex_type];
        let excludes =
            |test: &Test| matches!(test, Test::Types(names) if !names.contains(&of.name));
        // Other types need not have the attributes.
        if parts.iter().any(|(_, test)| excludes(test)) {
            return Ok(Vec::new());
        }
        let mut wanted: Option<Vec<u64>> = None;
        let mut columns = Vec::new();
        let mut tests = Vec::new();
        for (attribute, test) in parts {
            match test {
                Test::Types(_) => {}
                Test::Ids(ids) => wanted = Some(ids.clone()),
                test => {
                    let (column, field) = of
                        .attributes
                        .column_with_name(attribute)
                        .ok_or_else(|| self.no_attribute(attribute, vertex_type))?;
                    if let Some(expected) = test.misfit(field.data_type()) {
                        let found = format!("{attribute} of {}, {}", of.name, field.data_type());
                        return Err(sets.wrong(name, found, expected));
                    }
                    columns.push(column);
                    tests.push(test);
                }
            }
        }
        let mut kept = Vec::new();
        let mut keep = |ids: &[u64]| -> Result<()> {
            if columns.is_empty() {
                kept.extend(ids);
                return Ok(());
            }
            let mut holds = vec![true; ids.len()];
            let found = self.columns_of(vertex_type, ids, &columns)?;
            for (column, test) in found.iter().zip(&tests) {
                holds.iter_mut().zip(test.holds(column)).for_each(|(all, one)| *all &= one);
            }
            kept.extend(ids.iter().zip(holds).filter(|(_, holds)| *holds).map(|(id, _)| *id));
            Ok(())
        };
        match wanted {
            Some(mut ids) => {
                ids.sort_unstable();
                ids.dedup();
                let there = self.has_vertices(vertex_type, &ids)?;
                let mut there = there.into_iter();
                ids.retain(|_| there.next() == Some(true));
                keep(&ids)?;
            }
            None => self.vertices(vertex_type, 0..=u64::MAX, &mut keep)?,
        }
        Ok(kept)
    }

    fn no_attribute(&self, name: &str, vertex_type: usize) -> Error {
        let of = &self.types()[vertex_type];
        let names: Vec<&str> =
            of.attributes.fields().iter().map(|field| field.name().as_str()).collect();
        Error::NotFound {
            file: self.name(),
            what: format!("an attribute {name:?} of {}", of.name).into(),
            advice: match &names[..] {
                [] => "it has none".into(),
                names => format!("there are {}", names.join(", ")).into(),
            },
        }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use arrow_array::{BooleanArray, Float32Array, Int64Array, RecordBatch, StringArray};
    use arrow_schema::{Field, Schema};

    use super::*;
    use crate::read::network::NetworkOptions;
    use crate::write::change::Change;
    use crate::write::writer::Writer;

    #[test]
    fn rules_unions_and_what_is_wrong() {
        let folder = tempfile::tempdir().unwrap();
        let fields = [
            ("layer", DataType::Int64),
            ("radius", DataType::Float32),
            ("mtype", DataType::Utf8),
            ("big", DataType::Boolean),
        ];
        let fields = fields.map(|(name, of)| Field::new(name, of, true));
        let attributes = RecordBatch::try_new(
            Arc::new(Schema::new(fields.to_vec())),
            vec![
                Arc::new(Int64Array::from(vec![Some(1), Some(2), None, Some(2)])),
                Arc::new(Float32Array::from(vec![0.1, 0.2, 0.3, 0.4])),
                Arc::new(StringArray::from(vec![Some("L1_PC"), Some("L2_MC"), None, Some("PC")])),
                Arc::new(BooleanArray::from(vec![true, false, true, false])),
            ],
        )
        .unwrap();
        let mut writer =
            Writer::open(&folder.path().join("network"), NetworkOptions::default()).unwrap();
        let of = writer.vertex_type("cells", &attributes.schema()).unwrap();
        let ids = vec![10, 20, 30, 40];
        writer.commit(vec![Change::SetVertices { vertex_type: of, ids, attributes }]).unwrap();
        // A vertex without attributes is in no set that asks for one.
        let plain = Change::AddVertices { vertex_type: of, ids: vec![50], attributes: None };
        writer.commit(vec![plain]).unwrap();
        let select = |sets: &str| {
            let file = folder.path().join("sets.json");
            std::fs::write(&file, sets).unwrap();
            writer.network().node_set(of, &NodeSets::open(&file)?, "a")
        };
        for (rule, expected) in [
            (r#"{"layer": 2}"#, vec![20, 40]),
            (r#"{"layer": {"$lte": 2}}"#, vec![10, 20, 40]),
            (r#"{"radius": 0.2}"#, vec![20]),
            (r#"{"big": true, "radius": {"$gt": 0.1}}"#, vec![30]),
            (r#"{"mtype": {"$regex": "PC$"}}"#, vec![10, 40]),
            (r#"{"mtype": [], "layer": []}"#, vec![]),
            (r#"{"population": "cells"}"#, vec![10, 20, 30, 40, 50]),
            (r#"{"population": "others", "nothing": 1}"#, vec![]),
            (r#"{"node_id": [50, 11, 10, 10]}"#, vec![10, 50]),
            (r#"["b", "c", "b"], "b": {"layer": 1}, "c": {"node_id": 50}"#, vec![10, 50]),
        ] {
            assert_eq!(select(&format!("{{\"a\": {rule}}}")).unwrap(), expected, "{rule}");
        }
        for (sets, message) in [
            (r#"{"a": ["a"]}"#, "a -> a"),
            (r#"{"a": {"layer": "1"}}"#, "layer of cells, Int64, expected text"),
            (r#"{"a": {"depth": 1}}"#, "layer, radius, mtype, big"),
            (r#"{"b": {}}"#, "there are b"),
            (r#"{"a": {"mtype": {"$regex": "(?=x)"}}}"#, "look-around"),
            ("[]", "a JSON object"),
        ] {
            let error = select(sets).unwrap_err().to_string();
            assert!(error.contains(message), "{error}");
        }
    }
}
