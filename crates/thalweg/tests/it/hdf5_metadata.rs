//! The reader of metadata against libhdf5, on real files.
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use thalweg_hdf5::array::Found;
use thalweg_hdf5::libhdf5::File;
use thalweg_hdf5::metadata::{Entities, Entity, MetadataFile, Target};
use thalweg_io::control::Control;
use thalweg_io::model::StoreModel;
use thalweg_io::store::{FileStore, Store};
use thalweg_testing::real_files;

/// What is at each path of a file, in words.
type Listing = BTreeMap<String, String>;

fn described(found: &Found) -> String {
    match found {
        Found::Array(array) => format!("{array:?}"),
        Found::Other(what) => what.clone(),
    }
}

fn own(store: &Arc<dyn Store>) -> Result<Listing, String> {
    let control = Control::new();
    let file = MetadataFile::open(store, &control, StoreModel::LOCAL, 2, 1 << 20);
    let file = file.map_err(|error| error.to_string())?;
    let entities =
        file.entities(vec![file.superblock().root]).map_err(|error| error.to_string())?;
    let mut listing = Listing::new();
    list(&entities, file.superblock().root, "", &mut listing);
    Ok(listing)
}

fn list(entities: &Entities, at: u64, path: &str, listing: &mut Listing) {
    if path.matches('/').count() > 8 {
        return;
    }
    let words = match &entities[&at] {
        Ok(Entity::Group(links)) => {
            for link in &**links {
                if let Target::Object(at) = link.target {
                    let name = String::from_utf8_lossy(&link.name);
                    list(entities, at, &format!("{path}/{name}"), listing);
                }
            }
            return;
        }
        Ok(Entity::Dataset(found)) => described(found),
        Ok(Entity::Type) => return,
        Err(refused) => format!("refused: {refused:?}"),
    };
    listing.insert(path.to_owned(), words);
}

fn library(store: &Arc<dyn Store>) -> Result<Listing, String> {
    let control = Control::new();
    let file = File::open(store, &control).map_err(|error| error.to_string())?;
    let mut listing = Listing::new();
    let mut nodes = vec![(file.root().map_err(|error| error.to_string())?, String::new())];
    while let Some((node, path)) = nodes.pop() {
        if path.matches('/').count() > 8 {
            continue;
        }
        match node.array() {
            Ok(Some(found)) => drop(listing.insert(path, described(&found))),
            Err(error) => drop(listing.insert(path, format!("refused: {error}"))),
            Ok(None) if node.is_group() => {
                for link in node.links().map_err(|error| error.to_string())? {
                    let path = format!("{path}/{}", link.name);
                    match file.follow(&link) {
                        Ok(node) => nodes.push((node, path)),
                        Err(error) => drop(listing.insert(path, format!("refused: {error}"))),
                    }
                }
            }
            Ok(None) => {}
        }
    }
    Ok(listing)
}

fn files(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            files(&path, found);
        } else if path.extension().is_some_and(|extension| extension != "md") {
            found.push(path);
        }
    }
}

#[test]
fn real_files_are_what_libhdf5_says() {
    let Some(folder) = real_files::shared("hdf5") else { return };
    let mut paths = Vec::new();
    files(&folder, &mut paths);
    paths.sort();
    let (mut same, mut differing, mut datasets) = (0, 0, 0);
    for path in paths {
        if path
            .components()
            .any(|part| ["cve", "fuzz"].iter().any(|name| part.as_os_str() == *name))
        {
            continue;
        }
        let store: Arc<dyn Store> = Arc::new(FileStore::open(&path).unwrap());
        let (own, library) = (own(&store), library(&store));
        if own == library {
            same += 1;
            datasets += own.map_or(0, |own| own.len());
            continue;
        }
        differing += 1;
        println!("{}", path.display());
        match (own, library) {
            (Ok(own), Ok(library)) => {
                for path in own.keys().chain(library.keys()) {
                    let (own, library) = (own.get(path), library.get(path));
                    if own != library {
                        let cut = |words: Option<&String>| {
                            words.map(|words| words.chars().take(300).collect::<String>())
                        };
                        println!(
                            "  {path}\n    own     {:?}\n    library {:?}",
                            cut(own),
                            cut(library)
                        );
                    }
                }
            }
            (own, library) => println!("  own {:?}\n  library {:?}", own.err(), library.err()),
        }
    }
    println!("{same} files with {datasets} datasets are the same");
    assert!(same > 70 && datasets > 500, "{same} files with {datasets} datasets");
    assert_eq!(differing, 0, "{same} files are the same");
}
