//! Input files of networks: real files compared with the values that h5py reads, and hostile files.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use arrow_array::RecordBatch;
use thalweg::Error;
use thalweg::graph::input::{InputOptions as Options, ngv, open};
use thalweg::graph::{EdgeBatch, Input, VertexBatch};
use thalweg::hdf5::libhdf5::{Hdf5Writer, NewGroup, StoredNumber, VectorSpec};
use thalweg_testing::real_files::shared;

/// The edges of a population, and the batches of their attributes.
type Population = (Vec<(u64, u64)>, Vec<RecordBatch>);

pub(crate) fn edges(input: &mut Input) -> thalweg::Result<BTreeMap<String, Population>> {
    let mut found = BTreeMap::new();
    for source in &mut input.edges {
        let (mut piece, mut all, mut batches) = (EdgeBatch::default(), Vec::new(), Vec::new());
        while source.next(&mut piece)? {
            assert_eq!(piece.runs.iter().map(|run| run.1).sum::<usize>(), piece.targets.len());
            let sources =
                piece.runs.iter().flat_map(|&(source, count)| std::iter::repeat_n(source, count));
            all.extend(sources.zip(piece.targets.iter().copied()));
            if let Some(batch) = &piece.attributes {
                assert_eq!(batch.num_rows(), piece.targets.len());
            }
            batches.extend(piece.attributes.take());
        }
        assert!(!source.next(&mut piece)?, "the end stays the end");
        if let Some(total) = source.total() {
            assert_eq!(total, all.len() as u64);
        }
        found.insert(source.population().name.clone(), (all, batches));
    }
    Ok(found)
}

pub(crate) fn vertices(input: &mut Input) -> BTreeMap<String, (Vec<u64>, Vec<RecordBatch>)> {
    let mut found = BTreeMap::new();
    for source in &mut input.vertices {
        let (mut piece, mut ids, mut batches) = (VertexBatch::default(), Vec::new(), Vec::new());
        while source.next(&mut piece).unwrap() {
            ids.extend(&piece.ids);
            batches.extend(piece.attributes.take());
        }
        assert_eq!(source.total(), Some(ids.len() as u64));
        found.insert(source.vertex_type().to_owned(), (ids, batches));
    }
    found
}

fn counts(input: &mut Input) -> BTreeMap<String, usize> {
    vertices(input).into_iter().map(|(name, (ids, _))| (name, ids.len())).collect()
}

fn bytes(numbers: &[u64]) -> Vec<u8> {
    numbers.iter().flat_map(|number| number.to_le_bytes()).collect()
}

/// A test file whose datasets are written directly.
struct Made {
    writer: Hdf5Writer,
    path: PathBuf,
}

impl Made {
    fn new(folder: &tempfile::TempDir, name: &str) -> Self {
        let path = folder.path().join(name);
        let writer = Hdf5Writer::create(&path, &path.to_string_lossy().into()).unwrap();
        Self { writer, path }
    }

    fn group(&self, name: &str) -> NewGroup {
        self.writer.group(None, name).unwrap()
    }

    fn list(&self, group: &NewGroup, name: &str, numbers: &[u64], chunk: Option<u64>) {
        let of =
            VectorSpec { kind: StoredNumber::U64, len: numbers.len() as u64, chunk, filters: &[] };
        let vector = self.writer.vector(group, name, of).unwrap();
        match chunk {
            None => self.writer.values(&vector, 0, &bytes(numbers)).unwrap(),
            Some(chunk) => {
                for (number, part) in (0..).zip(numbers.chunks(chunk as usize)) {
                    let mut part = bytes(part);
                    part.resize(chunk as usize * 8, 0);
                    self.writer.chunk(&vector, number * chunk, &part, 0).unwrap();
                }
            }
        }
    }

    fn offsets(&self, group: &NewGroup, columns: &[&str], numbers: &[u64]) {
        self.writer.table(group, "offsets", StoredNumber::U64, columns, &bytes(numbers)).unwrap();
    }

    fn done(self) -> PathBuf {
        self.writer.finish().unwrap();
        self.path
    }
}

#[test]
fn neuroglial_connectivity() {
    let Some(folder) = shared("graph") else { return };
    let path = folder.join("basalt/neuroglial_connectivity.h5");
    let mut input = open(&path, &Options::default()).unwrap();
    assert_eq!(
        counts(&mut input),
        BTreeMap::from([("Astrocyte".into(), 4), ("Neuron".into(), 20)])
    );
    let found = edges(&mut input).unwrap();
    // According to h5py, each astrocyte has ten synapses and five neurons, with consecutive ids.
    let lists = |each: u64| (0..4 * each).map(|i| (i / each, i)).collect::<Vec<_>>();
    assert_eq!(found["Astrocyte-Synapse"].0, lists(10));
    assert_eq!(found["Astrocyte-Neuron"].0, lists(5));
    assert_eq!(found.len(), 2);
    assert_eq!(input.left_out.len(), 1, "the other side: {:?}", input.left_out);
    let population = input.edges[0].population();
    assert!(
        !population.is_directed
            && !population.is_multi
            && population.attributes.fields().is_empty()
    );
    // `/Neuron/offsets` of this file counts 20 elements of `/Neuron/astrocyte`, which has four.
    let wrong = ngv::check(&path, &Options::default()).unwrap_err().to_string();
    assert!(wrong.contains("/Neuron/offsets, element 5") && wrong.contains("at most 4"), "{wrong}");
}

#[test]
fn some_of_the_astrocytes() {
    let Some(folder) = shared("graph") else { return };
    let path = folder.join("basalt/neuroglial_connectivity.h5");
    for (sources, expected) in
        [(0..1, 0..10), (1..3, 10..30), (3..u64::MAX, 30..40), (9..u64::MAX, 40..40), (2..2, 0..0)]
    {
        let mut input =
            open(&path, &Options { sources: sources.clone(), ..Options::default() }).unwrap();
        let found = edges(&mut input).unwrap();
        let synapses: Vec<u64> = found["Astrocyte-Synapse"].0.iter().map(|edge| edge.1).collect();
        assert_eq!(synapses, expected.collect::<Vec<u64>>(), "{sources:?}");
        let all = vertices(&mut input);
        assert_eq!(
            all["Astrocyte"].0,
            (sources.start.min(4)..sources.end.min(4)).collect::<Vec<_>>()
        );
        assert!(!all.contains_key("Neuron"), "edges bring their own");
    }
}

#[test]
fn synapses_of_neurons_whose_offsets_are_long_doubles() {
    let Some(folder) = shared("graph") else { return };
    let path = folder.join("basalt/synaptic_connectivity.h5");
    let mut input = open(&path, &Options::default()).unwrap();
    assert_eq!(
        counts(&mut input),
        BTreeMap::from([("Afferent Neuron".into(), 20), ("Synapse".into(), 40)])
    );
    let found = edges(&mut input).unwrap();
    assert_eq!(found["Afferent Neuron-Synapse"].0, (0..40).map(|i| (i / 2, i)).collect::<Vec<_>>());
    let agreed = ngv::check(&path, &Options::default()).unwrap();
    assert_eq!(agreed.len(), 1);
    assert!(agreed[0].is_same && agreed[0].links == [40, 40], "{agreed:?}");
}

#[test]
fn gliovascular_connectivity() {
    let Some(folder) = shared("graph") else { return };
    let path = folder.join("basalt/gliovascular_connectivity.h5");
    let mut input = open(&path, &Options::default()).unwrap();
    let expected = [("Astrocyte", 4), ("Endfoot", 8), ("Vasculature Segment", 8)];
    assert_eq!(counts(&mut input), expected.map(|(name, count)| (name.to_owned(), count)).into());
    let found = edges(&mut input).unwrap();
    let pairs = |each: u64| (0..8).map(|i| (i / each, i)).collect::<Vec<_>>();
    assert_eq!(found["Astrocyte-Endfoot"].0, pairs(2));
    assert_eq!(found["Astrocyte-Vasculature Segment"].0, pairs(2));
    assert_eq!(found["Endfoot-Vasculature Segment"].0, pairs(1));
    assert_eq!(found.len(), 3);
    let agreed = ngv::check(&path, &Options::default()).unwrap();
    assert!(agreed.len() == 3 && agreed.iter().all(|one| one.is_same), "{agreed:?}");
}

/// Lists that are longer than a piece, and empty lists, for several layouts of the datasets.
#[test]
fn long_lists_come_in_pieces() {
    let folder = tempfile::tempdir().unwrap();
    let lens = [0, 700_000, 3, 0, 400_000, 300_000, 1, 0];
    let targets: Vec<u64> = (0..lens.iter().sum::<u64>()).map(|i| i * 7 % 1_000_003).collect();
    let (mut offsets, mut expected) = (vec![0], Vec::new());
    for (source, len) in (0..).zip(lens) {
        let start = offsets[source as usize];
        expected.extend(
            targets[start as usize..(start + len) as usize].iter().map(|&target| (source, target)),
        );
        offsets.push(start + len);
    }
    for chunk in [None, Some(1000), Some(700_001)] {
        let made = Made::new(&folder, "lists.h5");
        let group = made.group("Astrocyte");
        made.offsets(&group, &["synapse"], &offsets);
        made.list(&group, "synapse", &targets, chunk);
        let path = made.done();
        let found = edges(&mut open(&path, &Options::default()).unwrap()).unwrap();
        assert!(found["Astrocyte-Synapse"].0 == expected, "{chunk:?}");
        let some = Options { sources: 1..5, ..Options::default() };
        let found = edges(&mut open(&path, &some).unwrap()).unwrap();
        assert!(found["Astrocyte-Synapse"].0 == expected[..1_100_003], "{chunk:?}");
    }
}

fn neuroglial(
    folder: &tempfile::TempDir,
    offsets: &[u64],
    columns: &[&str],
    reverse: [&[u64]; 2],
) -> PathBuf {
    let made = Made::new(folder, "hostile.h5");
    let (astrocyte, neuron) = (made.group("Astrocyte"), made.group("Neuron"));
    made.offsets(&astrocyte, columns, offsets);
    made.list(&astrocyte, "synapse", &[5, 6, 7], None);
    made.list(&astrocyte, "neuron", &[1, 2], None);
    made.list(&neuron, "offsets", reverse[0], None);
    made.list(&neuron, "astrocyte", reverse[1], None);
    drop((astrocyte, neuron));
    made.done()
}

#[test]
fn both_sides_are_compared() {
    let folder = tempfile::tempdir().unwrap();
    let names = ["synapse", "neuron"];
    let offsets = [0, 0, 2, 1, 3, 2];
    for (reverse, links, is_same) in [
        ([&[0, 0, 1, 2][..], &[0, 1][..]], [2, 2], true),
        ([&[0, 0, 1, 2], &[1, 0]], [2, 2], false),
        ([&[0, 0, 1, 1], &[0]], [2, 1], false),
    ] {
        let path = neuroglial(&folder, &offsets, &names, reverse);
        let agreed = ngv::check(&path, &Options::default()).unwrap();
        assert_eq!((agreed[0].links, agreed[0].is_same), (links, is_same));
        assert_eq!(agreed[0].path, "/Neuron/astrocyte");
    }
}

fn refused(path: &Path) -> Error {
    open(path, &Options::default()).unwrap_err()
}

#[test]
fn false_offsets_are_refused_before_anything_is_read() {
    let folder = tempfile::tempdir().unwrap();
    let (names, reverse) = (["synapse", "neuron"], [&[0, 0, 1, 2][..], &[0, 1][..]]);
    for (offsets, names, words) in [
        ([0, 0, 4, 1, 3, 2], &names[..], "at most 3, the elements of /Astrocyte/synapse"),
        ([0, 0, 3, 1, 2, 2], &names, "at least 3, the offset before it"),
        ([0, 0, 2, 1, 2, 2], &names, "3, for /Astrocyte/synapse has so many elements"),
        ([1, 0, 2, 1, 3, 2], &names, "0, where the first list begins"),
        ([0, 0, u64::MAX, 1, 3, 2], &names, "at most 3"),
        ([0, 0, 2, 1, 3, 2], &["synapse", "nothing"], "dataset /Astrocyte/nothing not found"),
        ([0, 0, 2, 1, 3, 2], &["synapse", "neu\nron"], "not found"),
    ] {
        let path = neuroglial(&folder, &offsets, names, reverse);
        let error = refused(&path);
        assert!(error.to_string().contains(words), "{offsets:?}: {error}");
        assert!(matches!(error, Error::Malformed { .. } | Error::NotFound { .. }), "{error:?}");
    }
}

#[test]
fn other_files_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let made = Made::new(&folder, "other.h5");
    let group = made.group("entry");
    made.list(&group, "values", &[1, 2, 3], None);
    drop(group);
    let error = refused(&made.done());
    assert!(matches!(error, Error::Unsupported { .. }), "{error}");
    // Offsets without names of columns, and no offsets at all.
    for (offsets, words) in
        [(&[0, 3][..], "attribute column_names"), (&[], "one more than there are vertices")]
    {
        let made = Made::new(&folder, "nameless.h5");
        let group = made.group("Thing");
        made.list(&group, "offsets", offsets, None);
        made.list(&group, "other", &[1, 2, 3], None);
        drop(group);
        let error = refused(&made.done()).to_string();
        assert!(error.contains(words), "{error}");
    }
    // Floating-point numbers in place of ids.
    let made = Made::new(&folder, "floats.h5");
    let group = made.group("Astrocyte");
    made.offsets(&group, &["synapse"], &[0, 2]);
    let of = VectorSpec { kind: StoredNumber::F64, len: 2, chunk: None, filters: &[] };
    let vector = made.writer.vector(&group, "synapse", of).unwrap();
    let values: Vec<u8> = [3.0_f64, -1.5].iter().flat_map(|value| value.to_le_bytes()).collect();
    made.writer.values(&vector, 0, &values).unwrap();
    drop((vector, group));
    let error =
        edges(&mut open(&made.done(), &Options::default()).unwrap()).unwrap_err().to_string();
    assert!(error.contains("/Astrocyte/synapse, element 1") && error.contains("-1.5"), "{error}");
}

/// Every value of a column, as text.
fn column(batches: &[RecordBatch], name: &str) -> Vec<String> {
    use arrow_array::Array;
    use arrow_array::cast::AsArray;
    use arrow_array::types::{Float32Type, Float64Type, Int64Type, UInt32Type};
    use arrow_schema::DataType;

    let mut values = Vec::new();
    for batch in batches {
        let column = batch.column_by_name(name).unwrap();
        values.extend((0..column.len()).map(|at| match column.data_type() {
            _ if column.is_null(at) => "null".into(),
            DataType::Float64 => column.as_primitive::<Float64Type>().value(at).to_string(),
            DataType::Float32 => column.as_primitive::<Float32Type>().value(at).to_string(),
            DataType::Int64 => column.as_primitive::<Int64Type>().value(at).to_string(),
            DataType::UInt32 => column.as_primitive::<UInt32Type>().value(at).to_string(),
            DataType::Utf8 => column.as_string::<i32>().value(at).to_owned(),
            other => panic!("{other}"),
        }));
    }
    values
}

#[test]
fn sonata_edges_with_attributes() {
    let Some(folder) = shared("graph") else { return };
    for name in ["edges1", "edges-no-index"] {
        let path = folder.join(format!("libsonata/{name}.h5"));
        let mut input = open(&path, &Options::default()).unwrap();
        let population = input.edges[0].population().clone();
        let told =
            (population.name.as_str(), population.source.as_str(), population.target.as_str());
        assert_eq!(told, ("edges-AB", "nodes-A", "nodes-B"));
        assert!(population.is_directed && population.is_multi);
        for what in ["A-double", "A-enum", "A-string", "edge_type_id"] {
            assert!(
                input.left_out.iter().any(|left| left.contains(what)),
                "{what}: {:?}",
                input.left_out
            );
        }
        let found = edges(&mut input).unwrap();
        let (pairs, batches) = &found["edges-AB"];
        assert_eq!(pairs[..], [(1, 1), (1, 2), (2, 1), (2, 1), (3, 0), (3, 2)]);
        assert_eq!(column(batches, "attr-X"), ["11", "12", "13", "14", "15", "16"]);
        assert_eq!(column(batches, "attr-Y"), ["21", "22", "23", "24", "25", "26"]);
        assert_eq!(column(batches, "attr-Z"), ["aa", "bb", "cc", "dd", "ee", "ff"]);
        assert_eq!(
            column(batches, "dynamics_params/dparam-Z"),
            ["d-aa", "d-bb", "d-cc", "d-dd", "d-ee", "d-ff"]
        );
        if name == "edges1" {
            assert_eq!(column(batches, "E-mapping-good"), ["C", "B", "C", "A", "C", "C"]);
            // The codes 3 and -1 are invalid, because there are three names.
            assert_eq!(column(batches, "E-mapping-bad"), ["C", "null", "B", "A", "null", "C"]);
            assert!(found["edges-AC"].0.is_empty());
        }
        let some = Options { sources: 2..3, ..Options::default() };
        let (pairs, batches) = &edges(&mut open(&path, &some).unwrap()).unwrap()["edges-AB"];
        assert_eq!(
            (&pairs[..], column(batches, "attr-X")),
            (&[(2, 1), (2, 1)][..], vec!["13".into(), "14".into()])
        );
    }
}

#[test]
fn sonata_nodes_with_attributes() {
    let Some(folder) = shared("graph") else { return };
    let all = |name: &str| vertices(&mut open(&folder.join(name), &Options::default()).unwrap());
    let found = all("libsonata/nodes1.h5");
    assert_eq!(found["nodes-A"].0, [0, 1, 2, 3, 4, 5]);
    assert_eq!(column(&found["nodes-A"].1, "attr-Z"), ["aa", "bb", "cc", "dd", "ee", "ff"]);
    assert!(found["nodes-B"].0.is_empty());
    let found = all("snap/nodes.h5");
    assert_eq!([found["default"].0.len(), found["default2"].0.len()], [3, 4]);
    assert_eq!(column(&found["default"].1, "morphology"), ["morph-A", "morph-B", "morph-C"]);
    assert_eq!(
        column(&found["default"].1, "dynamics_params/input_resistance"),
        ["1", "1.1", "1.2"]
    );
    assert_eq!(column(&found["default2"].1, "other2"), ["10", "11", "12", "13"]);
    let found = all("archngv/glia_nodes.h5");
    assert_eq!(column(&found["astrocytes"].1, "mtype"), ["ASTROCYTE"; 5]);
    assert_eq!(column(&found["astrocytes"].1, "morphology")[4], "GLIA_0000000000004");
}

#[test]
fn other_real_sonata_files() {
    let Some(folder) = shared("graph") else { return };
    let all = |name: &str| {
        let mut input = open(&folder.join(name), &Options::default()).unwrap();
        let kinds = input.edges.iter().map(|edges| edges.population().clone()).collect::<Vec<_>>();
        (kinds, edges(&mut input).unwrap())
    };
    let (kinds, found) = all("snap/edges.h5");
    assert_eq!(kinds.len(), 2);
    for name in ["default", "default2"] {
        assert_eq!(found[name].0, [(2, 0), (0, 1), (0, 1), (2, 1)]);
        assert_eq!(column(&found[name].1, "afferent_center_x"), ["1110", "1111", "1112", "1113"]);
    }
    assert_eq!(column(&found["default2"].1, "other1"), ["A", "B", "C", "D"]);
    let (kinds, found) = all("archngv/neuroglial.h5");
    assert_eq!((kinds[0].source.as_str(), kinds[0].target.as_str()), ("astrocytes", "All"));
    let (pairs, batches) = &found["neuroglial"];
    assert_eq!(pairs.len(), 505);
    assert_eq!(pairs[..6], [(0, 0), (0, 0), (1, 0), (1, 0), (1, 0), (1, 0)]);
    assert_eq!(column(batches, "astrocyte_section_id")[..3], ["2", "15", "103"]);
    let (kinds, found) = all("archngv/gliovascular.h5");
    assert_eq!((kinds[0].source.as_str(), kinds[0].target.as_str()), ("vasculature", "astrocytes"));
    assert_eq!(found["gliovascular"].0[..3], [(104, 0), (510, 1), (444, 1)]);
    let (_, found) = all("archngv/circuit_edges.h5");
    let pairs = &found["All"].0;
    assert_eq!(
        pairs.iter().map(|pair| pair.0).collect::<Vec<_>>(),
        (0..500).map(|i| i % 10).collect::<Vec<_>>()
    );
    assert_eq!(
        pairs[..25].iter().map(|pair| pair.1).collect::<Vec<_>>(),
        (0..25).map(|i| i / 10).collect::<Vec<_>>()
    );
}

/// A file with the population `/edges/one`, which has these sources and targets.
fn sonata(
    folder: &tempfile::TempDir,
    ends: [Option<&[u64]>; 2],
    groups: Option<[&[u64]; 2]>,
) -> PathBuf {
    let made = Made::new(folder, "sonata.h5");
    let all = made.group("edges");
    let one = made.writer.group(Some(&all), "one").unwrap();
    for (name, ids) in ["source_node_id", "target_node_id"].into_iter().zip(ends) {
        if let Some(ids) = ids {
            made.list(&one, name, ids, None);
        }
    }
    for (name, ids) in
        ["edge_group_id", "edge_group_index"].into_iter().zip(groups.into_iter().flatten())
    {
        made.list(&one, name, ids, None);
    }
    let attributes = made.writer.group(Some(&one), "0").unwrap();
    made.list(&attributes, "weight", &[7, 8], None);
    drop((attributes, one, all));
    made.done()
}

#[test]
fn hostile_sonata_files() {
    let folder = tempfile::tempdir().unwrap();
    let (two, three) = (Some(&[5_u64, 6][..]), Some(&[1_u64, 2, 3][..]));
    let path = sonata(&folder, [two, two], None);
    let mut input = open(&path, &Options::default()).unwrap();
    let population = input.edges[0].population();
    assert_eq!(
        (population.source.as_str(), population.target.as_str()),
        ("one_source", "one_target")
    );
    assert_eq!(edges(&mut input).unwrap()["one"].0, [(5, 5), (6, 6)]);
    for (ends, words) in
        [([two, three], "2, as source_node_id has"), ([two, None], "target_node_id not found")]
    {
        let error = refused(&sonata(&folder, ends, None)).to_string();
        assert!(error.contains(words), "{error}");
    }
    // An index of attributes in which the attributes do not follow the edges.
    for (groups, words) in [
        ([&[0_u64, 1], &[0_u64, 1]], "edge_group_id, element 1"),
        ([&[0, 0], &[1, 0]], "edge_group_index, element 0"),
    ] {
        let path = sonata(&folder, [two, two], Some(groups.map(|list| &list[..])));
        let error = edges(&mut open(&path, &Options::default()).unwrap()).unwrap_err().to_string();
        assert!(error.contains(words), "{error}");
    }
    let error = refused(&sonata(&folder, [two, two], Some([&[0, 0, 0], &[0, 1, 2]]))).to_string();
    assert!(error.contains("edge_group_id"), "{error}");
    // Attributes of another length are left out, and the report names them.
    let input = open(&sonata(&folder, [three, three], None), &Options::default()).unwrap();
    assert!(input.left_out.iter().any(|left| left.contains("weight")), "{:?}", input.left_out);
}
