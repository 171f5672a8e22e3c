//! The objects of a file by their paths: groups, datasets, their links and attributes.

use std::sync::Arc;

use thalweg_io::Error;

use super::datatype::{Class, Datatype};
use super::file::{Entity, MetadataFile};
use super::group::{Link, Target};
use super::{Object, Reader, Refused, Result};
use crate::array::{Found, Variable};
use crate::types::Value;

/// The most symbolic links that one path may go through.
const MOST_SYMBOLIC: usize = 16;

/// An object of a file.
#[derive(Debug, Clone)]
pub struct Node {
    file: Arc<MetadataFile>,
    address: u64,
    path: String,
}

/// A hard link of a group.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NodeLink {
    /// Its name.
    pub name: String,
    /// The path of the object through this link.
    pub path: String,
    /// The address of the object's header.
    pub address: u64,
}

/// The path of what is called `name` in the group at `path`.
fn below(path: &str, name: &str) -> String {
    format!("{}/{name}", path.trim_end_matches('/'))
}

impl MetadataFile {
    /// The root group.
    pub fn root(self: &Arc<Self>) -> Node {
        self.at(self.superblock().root, "/")
    }

    /// The object whose header is at an address. Errors call it `path`.
    pub fn at(self: &Arc<Self>, address: u64, path: &str) -> Node {
        Node { file: self.clone(), address, path: path.to_owned() }
    }

    /// The object that a link leads to.
    pub fn follow(self: &Arc<Self>, link: &NodeLink) -> Node {
        self.at(link.address, &link.path)
    }
}

impl Node {
    /// Its path in the file.
    pub fn path(&self) -> &str {
        &self.path
    }

    /// The address of its header.
    pub fn address(&self) -> u64 {
        self.address
    }

    /// The file that it is in.
    pub fn file(&self) -> &Arc<MetadataFile> {
        &self.file
    }

    /// The header.
    async fn object(&self, reader: &Reader<'_>) -> Result<Object> {
        Object::read(reader, self.address).await
    }

    /// The object: a group with its links, or what a dataset holds.
    ///
    /// # Errors
    /// [`Error::Malformed`]; the errors of the store.
    pub fn entity(&self) -> Result<Entity, Error> {
        self.file.entity_at(self.address, &self.path)
    }

    /// Whether it is a group.
    ///
    /// # Errors
    /// [`Error::Malformed`] for a damaged header; the errors of the store.
    pub fn is_group(&self) -> Result<bool, Error> {
        self.file.is_group(self.address, &self.path)
    }

    /// The group's hard links, in the order of their names. Other links are left out.
    ///
    /// # Errors
    /// [`Error::Malformed`] for damage, and for what is not a group; the errors of the store.
    pub fn links(&self) -> Result<Vec<NodeLink>, Error> {
        self.all_links().map(|links| self.hard_links(&links))
    }

    /// The hard links among `links`, which are those of this group, in the order of their names.
    pub(crate) fn hard_links(&self, links: &[Link]) -> Vec<NodeLink> {
        let hard = |link: &Link| match link.target {
            Target::Object(address) => {
                let name = String::from_utf8_lossy(&link.name).into_owned();
                Some(NodeLink { path: below(&self.path, &name), name, address })
            }
            _ => None,
        };
        let mut links: Vec<NodeLink> = links.iter().filter_map(hard).collect();
        links.sort_by(|a, b| a.name.cmp(&b.name));
        links
    }

    /// The links to other files among `links`, which are those of this group: for each its path,
    /// the name of the file, and the path in that file.
    pub(crate) fn external_links(&self, links: &[Link]) -> Vec<[String; 3]> {
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        let external = |link: &Link| match &link.target {
            Target::External { file, path } => {
                Some([below(&self.path, &text(&link.name)), text(file), text(path)])
            }
            _ => None,
        };
        links.iter().filter_map(external).collect()
    }

    fn all_links(&self) -> Result<Arc<Vec<Link>>, Error> {
        self.file.links(self.address, &self.path)
    }

    /// The object that a link of the group leads to; `None` if it has no such link, or if a
    /// symbolic link leads nowhere.
    ///
    /// # Errors
    /// As [`Node::links`]; [`Error::Unsupported`] for a link to another file.
    pub fn child(&self, name: &str) -> Result<Option<Self>, Error> {
        self.child_through(name, &mut { MOST_SYMBOLIC })
    }

    /// The object that a link leads to, through at most `left` symbolic links.
    fn child_through(&self, name: &str, left: &mut usize) -> Result<Option<Self>, Error> {
        let path = below(&self.path, name);
        let links = self.all_links()?;
        let Some(link) = links.iter().find(|link| link.name == name.as_bytes()) else {
            return Ok(None);
        };
        let unsupported = |what: String| Err(self.file.error(Refused::Foreign(what.into()), &path));
        match &link.target {
            Target::Object(address) => Ok(Some(self.file.at(*address, &path))),
            Target::Path(target) => {
                let Some(fewer) = left.checked_sub(1) else {
                    return unsupported(format!("more than {MOST_SYMBOLIC} symbolic links"));
                };
                *left = fewer;
                let target = String::from_utf8_lossy(target);
                let mut node =
                    if target.starts_with('/') { self.file.root() } else { self.clone() };
                for name in target.split('/').filter(|name| !matches!(*name, "" | ".")) {
                    if !node.is_group()? {
                        return Ok(None);
                    }
                    let Some(next) = node.child_through(name, left)? else { return Ok(None) };
                    node = next;
                }
                Ok(Some(Self { path, ..node }))
            }
            Target::External { file, .. } => {
                unsupported(format!("a link to another file, {}", String::from_utf8_lossy(file)))
            }
            Target::UserDefined(kind) => unsupported(format!("a link of class {kind}")),
        }
    }

    /// What a dataset holds, and where; `None` if the object is not a dataset. Every range in the
    /// file that it names is inside the file.
    ///
    /// # Errors
    /// [`Error::Malformed`]; the errors of the store.
    pub fn array(&self) -> Result<Option<Found>, Error> {
        self.file.array(self.address, &self.path)
    }

    /// The shape and the item type of a dataset of elements of any length; `None` for any other
    /// dataset.
    ///
    /// # Errors
    /// As [`Node::array`].
    pub fn variable(&self) -> Result<Option<Variable>, Error> {
        self.file.variable(self.address, &self.path)
    }

    /// The type of a dataset's elements, as it is stored; `None` if the object is not a dataset.
    ///
    /// # Errors
    /// As [`Node::array`].
    pub(crate) fn datatype(&self) -> Result<Option<Datatype>, Error> {
        let reader = self.file.reader();
        self.file.wait(&self.path, async {
            let header = self.object(&reader).await?.dataset(&reader).await?;
            Ok(header.map(|header| header.datatype))
        })
    }

    /// Whether the node is a dataset of an enumeration.
    ///
    /// # Errors
    /// As [`Node::array`].
    pub fn is_enumeration(&self) -> Result<bool, Error> {
        let is_enumeration =
            |datatype: Datatype| matches!(datatype.class, Class::Enumeration { .. });
        Ok(self.datatype()?.is_some_and(is_enumeration))
    }

    /// Its attributes.
    ///
    /// # Errors
    /// [`Error::Malformed`]; the errors of the store.
    pub fn attributes(&self) -> Result<Vec<(String, Value)>, Error> {
        let reader = self.file.reader();
        self.file.wait(&self.path, async { self.object(&reader).await?.values(&reader).await })
    }

    /// One of its attributes; `None` if no attribute has that name.
    ///
    /// # Errors
    /// As [`Node::attributes`].
    pub fn attribute(&self, name: &str) -> Result<Option<Value>, Error> {
        let reader = self.file.reader();
        self.file.wait(&self.path, async { self.object(&reader).await?.value(&reader, name).await })
    }

    /// The attribute `NX_class` of a group.
    ///
    /// # Errors
    /// As [`Node::attributes`].
    pub(crate) fn class(&self) -> Result<Option<Value>, Error> {
        match self.file.known_class(self.address) {
            Some(class) => Ok(class),
            None => self.attribute("NX_class"),
        }
    }

    /// The strings of one of its attributes; `None` if no attribute has that name, or if it is of
    /// another type or too large.
    ///
    /// # Errors
    /// As [`Node::attributes`].
    pub fn texts(&self, name: &str) -> Result<Option<Vec<String>>, Error> {
        let reader = self.file.reader();
        self.file.wait(&self.path, async { self.object(&reader).await?.texts(&reader, name).await })
    }

    /// The address of the header of each dimension's first scale (HDF5 dimension scale
    /// specification, `DIMENSION_LIST`). It is `None` for a dimension without a scale. The list is
    /// empty for a dataset without scales.
    ///
    /// # Errors
    /// As [`Node::attributes`].
    pub(crate) fn dimension_scales(&self) -> Result<Vec<Option<u64>>, Error> {
        let reader = self.file.reader();
        self.file.wait(&self.path, async { self.object(&reader).await?.scales(&reader).await })
    }
}
