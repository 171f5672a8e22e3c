//! Paths with wildcards.

use std::collections::HashSet;

use thalweg_io::{Error, Result};

use super::{ArrayFile, Dataset, Survey};
use crate::metadata::Node;

/// The most objects that match a pattern.
const MOST_MATCHES: usize = 1 << 18;

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
        let mut ways: Vec<Way<'_>> =
            patterns.iter().map(|pattern| Way::new(pattern.as_ref(), self.file.root())).collect();
        // All at once, so that each level takes few rounds.
        while ways.iter().any(|way| !way.names.is_empty()) {
            let groups = ways.iter().filter(|way| !way.names.is_empty()).flat_map(Way::nodes);
            self.file.find_links(groups.map(Node::address).collect())?;
            for way in &mut ways {
                way.step(self)?;
            }
        }
        self.file.find_below(ways.iter().flat_map(Way::nodes).map(Node::address).collect())?;
        let mut all = Survey::default();
        let mut seen = HashSet::new();
        for Way { pattern, exact, matching, .. } in ways {
            let must_match = exact.is_none();
            let nodes = exact.map_or(matching, |node| Ok(vec![node]))?;
            let mut is_empty = true;
            for node in nodes {
                let Survey { datasets, unreadable, external } = self.survey_found(node)?;
                is_empty &= datasets.is_empty() && unreadable.is_empty();
                // A dataset that several patterns match is read once.
                let new = |dataset: &Dataset| seen.insert(dataset.path().to_owned());
                all.datasets.extend(datasets.into_iter().filter(new));
                all.external.extend(external);
                all.unreadable.extend(unreadable);
            }
            if must_match && is_empty {
                return Err(self.missing(pattern));
            }
        }
        Ok(all)
    }
}

/// The way to the objects of a pattern.
struct Way<'a> {
    pattern: &'a str,
    /// The names of the pattern below the nodes; the next one is the last.
    names: Vec<&'a str>,
    /// The object whose path is the pattern, so far.
    exact: Option<Node>,
    /// The objects that match the pattern, so far.
    matching: Result<Vec<Node>>,
}

impl<'a> Way<'a> {
    fn new(pattern: &'a str, root: Node) -> Self {
        let names = pattern.split('/').filter(|name| !name.is_empty()).rev().collect();
        // Names without wildcards have one object at most.
        let matching = if is_wild(pattern) { vec![root.clone()] } else { Vec::new() };
        Self { pattern, names, exact: Some(root), matching: Ok(matching) }
    }

    fn nodes(&self) -> impl Iterator<Item = &Node> {
        self.exact.iter().chain(self.matching.iter().flatten())
    }

    /// Goes to the next name.
    fn step(&mut self, file: &ArrayFile) -> Result<()> {
        let Some(name) = self.names.pop() else { return Ok(()) };
        if let Some(node) = self.exact.take()
            && node.is_group()?
        {
            self.exact = node.child(name)?;
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
                next.extend(node.child(name)?);
                continue;
            };
            let mut links = node.links()?;
            links.retain(|link| names.matches(&link.name));
            links.sort_by(|a, b| a.name.cmp(&b.name));
            next.extend(links.iter().map(|link| file.file.follow(link)));
            // Groups that contain each other have more paths than fit into memory.
            if next.len() > MOST_MATCHES {
                let why = format!("{}: more than {MOST_MATCHES} objects match", self.pattern);
                return Err(Error::Usage(why.into()));
            }
        }
        self.matching = Ok(next);
        Ok(())
    }
}

fn is_wild(name: &str) -> bool {
    name.contains(['*', '?', '['])
}
