//! Paths with wildcards.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use thalweg_io::{Error, Result};

use super::{ArrayFile, Dataset, Survey};
use crate::metadata::Node;

/// The most objects that match the patterns of a list: about 50 MB of nodes and paths.
const MOST_MATCHES: usize = 1 << 18;
/// The most objects in sum over all patterns, each counted for every pattern that it matches: 32 MB
/// of references to them.
const MOST_IN_SUM: usize = 1 << 22;

impl ArrayFile {
    /// The datasets at or below the paths that match a pattern, in the order of their paths: `*`
    /// stands for any letters and `?` for any one letter within a name, as in `/entry/*/event_id`.
    /// A pattern that is itself the path of an object matches only that object.
    ///
    /// # Errors
    /// [`Error::NotFound`] if nothing matches; [`Error::Usage`] if the pattern is not valid; the
    /// first defect.
    pub fn matching(&self, pattern: &str) -> Result<Vec<Dataset>> {
        self.survey(&[pattern])?.whole()
    }

    /// The datasets that [`ArrayFile::matching`] gives for each of the patterns, one after the
    /// other and each once, and what could not be read among them.
    ///
    /// # Errors
    /// [`Error::NotFound`] if nothing matches one of them; [`Error::Usage`] if a pattern is not
    /// valid; defects of the objects on the way to the patterns; [`Error::Cancelled`].
    pub fn survey<P: AsRef<str>>(&self, patterns: &[P]) -> Result<Survey> {
        let mut all = Union::default();
        for Way { pattern, exact, matching, .. } in self.ways(patterns)? {
            let must_match = exact.is_none();
            let nodes = exact.map_or(matching, |node| Ok(vec![node]))?;
            let mut is_empty = true;
            for node in nodes {
                is_empty &= !all.add(self, &node)?;
            }
            if must_match && is_empty {
                return Err(self.missing(pattern));
            }
        }
        Ok(all.survey)
    }

    /// The objects that match each of the patterns, once all that is below them is found. A pattern
    /// that occurs again is left out.
    fn ways<'a, P: AsRef<str>>(&self, patterns: &'a [P]) -> Result<Vec<Way<'a>>> {
        let root = Arc::new(self.file.root());
        let mut known = HashSet::new();
        let mut ways: Vec<Way<'_>> = patterns
            .iter()
            .map(|pattern| Way::new(pattern.as_ref(), root.clone()))
            .filter(|way| known.insert(way.names.clone()))
            .collect();
        // All at once, so that each level takes few rounds.
        while ways.iter().any(|way| !way.names.is_empty()) {
            let groups = ways.iter().filter(|way| !way.names.is_empty()).flat_map(Way::nodes);
            self.file.find_links(addresses(groups))?;
            let mut matches = Matches::default();
            for way in &mut ways {
                way.step(self, &mut matches)?;
            }
        }
        self.file.find_below(addresses(ways.iter().flat_map(Way::nodes)))?;
        Ok(ways)
    }
}

/// The addresses of nodes, each once.
fn addresses<'a>(nodes: impl Iterator<Item = &'a Arc<Node>>) -> Vec<u64> {
    let mut addresses: Vec<u64> = nodes.map(|node| node.address()).collect();
    addresses.sort_unstable();
    addresses.dedup();
    addresses
}

/// The surveys of objects, joined: each object and each dataset counts once.
#[derive(Default)]
struct Union {
    survey: Survey,
    /// The objects that were surveyed, by their paths, and whether something is there.
    objects: HashMap<String, bool>,
    datasets: HashSet<String>,
    /// What was said about objects that are not read.
    said: HashSet<String>,
}

impl Union {
    /// Adds what is at or below a node. Returns whether something is there.
    fn add(&mut self, file: &ArrayFile, node: &Node) -> Result<bool> {
        if let Some(&has_some) = self.objects.get(node.path()) {
            return Ok(has_some);
        }
        let Survey { datasets, unreadable, external } = file.survey_found(node.clone())?;
        let has_some = !datasets.is_empty() || !unreadable.is_empty();
        self.objects.insert(node.path().to_owned(), has_some);
        let new = |dataset: &Dataset| self.datasets.insert(dataset.path().to_owned());
        self.survey.datasets.extend(datasets.into_iter().filter(new));
        let mut is_new = |words: String| self.said.insert(words);
        self.survey.external.extend(external.into_iter().filter(|link| is_new(link.clone())));
        let new = unreadable.into_iter().filter(|error| is_new(error.to_string()));
        self.survey.unreadable.extend(new);
        Ok(has_some)
    }
}

/// The objects that match at one level, over all patterns. One that matches several patterns is
/// there once.
#[derive(Default)]
struct Matches {
    nodes: HashMap<String, Arc<Node>>,
    in_sum: usize,
}

impl Matches {
    /// The node that all patterns share.
    fn shared(&mut self, node: Node, pattern: &str) -> Result<Arc<Node>> {
        self.in_sum += 1;
        // Groups that contain each other have more paths than fit into memory.
        if self.nodes.len() >= MOST_MATCHES || self.in_sum > MOST_IN_SUM {
            let most = if self.in_sum > MOST_IN_SUM { MOST_IN_SUM } else { MOST_MATCHES };
            let why = format!(
                "{pattern}: more than {most} objects match this pattern and those before it: name \
                 groups further down, or fewer patterns"
            );
            return Err(Error::Usage(why.into()));
        }
        if let Some(known) = self.nodes.get(node.path()) {
            return Ok(known.clone());
        }
        let node = Arc::new(node);
        self.nodes.insert(node.path().to_owned(), node.clone());
        Ok(node)
    }
}

/// The way to the objects of a pattern.
struct Way<'a> {
    pattern: &'a str,
    /// The names of the pattern below the nodes; the next one is the last.
    names: Vec<&'a str>,
    /// The object whose path is the pattern, so far.
    exact: Option<Arc<Node>>,
    /// The objects that match the pattern, so far.
    matching: Result<Vec<Arc<Node>>>,
}

impl<'a> Way<'a> {
    fn new(pattern: &'a str, root: Arc<Node>) -> Self {
        let names: Vec<_> = pattern.split('/').filter(|name| !name.is_empty()).rev().collect();
        // Names without wildcards have one object at most.
        let matching = if is_wild(pattern) { vec![root.clone()] } else { Vec::new() };
        Self { pattern, names, exact: Some(root), matching: Ok(matching) }
    }

    fn nodes(&self) -> impl Iterator<Item = &Arc<Node>> {
        self.exact.iter().chain(self.matching.iter().flatten())
    }

    /// Goes to the next name.
    fn step(&mut self, file: &ArrayFile, matches: &mut Matches) -> Result<()> {
        let Some(name) = self.names.pop() else { return Ok(()) };
        if let Some(node) = self.exact.take()
            && node.is_group()?
        {
            let child = node.child(name)?;
            self.exact = child.map(|node| matches.shared(node, self.pattern)).transpose()?;
        }
        let Ok(nodes) = &self.matching else { return Ok(()) };
        let names = is_wild(name).then(|| glob::Pattern::new(name)).transpose();
        let names = match names {
            Ok(names) => names,
            Err(error) => {
                // It counts if no object has the pattern as its path.
                let why = format!("{}: not a pattern: {error}", self.pattern);
                self.matching = Err(Error::Usage(why.into()));
                return Ok(());
            }
        };
        let mut next = Vec::new();
        for node in nodes {
            file.options.control.check()?;
            if !node.is_group()? {
                continue;
            }
            let Some(names) = &names else {
                if let Some(child) = node.child(name)? {
                    next.push(matches.shared(child, self.pattern)?);
                }
                continue;
            };
            let mut links = node.links()?;
            links.retain(|link| names.matches(&link.name));
            links.sort_by(|a, b| a.name.cmp(&b.name));
            for link in &links {
                next.push(matches.shared(file.file.follow(link), self.pattern)?);
            }
        }
        self.matching = Ok(next);
        Ok(())
    }
}

fn is_wild(name: &str) -> bool {
    name.contains(['*', '?', '['])
}

#[cfg(all(test, feature = "libhdf5"))]
mod tests;
