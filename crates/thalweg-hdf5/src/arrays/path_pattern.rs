//! Paths with wildcards.

use thalweg_io::{Error, Result};

use super::{ArrayFile, Dataset, Survey};
use crate::metadata::Node;

impl ArrayFile {
    /// The datasets at or below the paths that match a pattern, in the order of their paths: `*`
    /// stands for any letters and `?` for any one letter within a name, as in `/entry/*/event_id`.
    /// A pattern that is itself the path of an object matches only that object.
    ///
    /// # Errors
    /// [`Error::NotFound`] if nothing matches; [`Error::Usage`] if the pattern is not valid; the
    /// first defect.
    pub fn matching(&self, pattern: &str) -> Result<Vec<Dataset>> {
        self.survey(pattern)?.whole()
    }

    /// The datasets that [`ArrayFile::matching`] gives, and what could not be read among them.
    ///
    /// # Errors
    /// [`Error::NotFound`] if nothing matches; [`Error::Usage`] if the pattern is not valid;
    /// defects of the objects on the way to the pattern; [`Error::Cancelled`].
    pub fn survey(&self, pattern: &str) -> Result<Survey> {
        let none = match self.survey_below(pattern) {
            Err(none @ Error::NotFound { .. }) if pattern.contains(['*', '?', '[']) => none,
            outcome => return outcome,
        };
        let mut all = Survey::default();
        let mut found = vec![self.file.root()];
        for name in pattern.split('/').filter(|name| !name.is_empty()) {
            let names = glob::Pattern::new(name)
                .map_err(|e| Error::Usage(format!("{pattern}: not a pattern: {e}").into()))?;
            let mut next = Vec::new();
            // All at once, so that each level of the pattern takes few rounds.
            self.file.find_links(addresses(&found))?;
            for node in &found {
                if !node.is_group()? {
                    continue;
                }
                if !name.contains(['*', '?', '[']) {
                    next.extend(node.child(name)?);
                    continue;
                }
                let mut links = node.links()?;
                links.retain(|link| names.matches(&link.name));
                links.sort_by(|a, b| a.name.cmp(&b.name));
                for link in &links {
                    next.push(self.file.follow(link));
                }
            }
            found = next;
        }
        self.file.find_below(addresses(&found))?;
        for node in found {
            let Survey { datasets, unreadable, external } = self.survey_found(node)?;
            all.datasets.extend(datasets);
            all.external.extend(external);
            all.unreadable.extend(unreadable);
        }
        if all.datasets.is_empty() && all.unreadable.is_empty() { Err(none) } else { Ok(all) }
    }
}

fn addresses(nodes: &[Node]) -> Vec<u64> {
    nodes.iter().map(Node::address).collect()
}
