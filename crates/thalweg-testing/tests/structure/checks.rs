//! The checks of a crate's sources and of its manifest.

use std::collections::{BTreeMap, BTreeSet};

use crate::tokens::{Placed, Token, past_bracket, tokens, without_tests};

/// Something that should not be: what an exception would name, and the words of the report.
pub(crate) struct Finding {
    pub(crate) of: String,
    pub(crate) words: String,
}

impl Finding {
    fn at(path: &str, line: usize, what: impl std::fmt::Display) -> Self {
        Self { of: path.to_owned(), words: format!("{path}:{line}: {what}") }
    }
}

struct Source {
    path: String,
    /// Names of the modules from the root of the crate; empty for `lib.rs` and `main.rs`.
    module: Vec<String>,
    tokens: Vec<Placed>,
}

/// A crate's sources without its tests.
pub(crate) struct Crate {
    pub(crate) name: String,
    sources: Vec<Source>,
    /// Modules whose file has a folder beside it.
    folders: BTreeSet<Vec<String>>,
}

/// `a/b/src/c/d.rs` is the module `c::d`.
fn module_of(path: &str) -> Vec<String> {
    let inside = path.split_once("src/").map_or(path, |(_, inside)| inside);
    let inside = inside.trim_end_matches(".rs");
    match inside {
        "lib" | "main" => Vec::new(),
        _ => inside.split('/').filter(|name| *name != "mod").map(str::to_owned).collect(),
    }
}

impl Crate {
    pub(crate) fn new(name: &str, files: Vec<(String, String)>) -> Self {
        let mut tests = Vec::new();
        let mut sources = Vec::new();
        for (path, text) in files {
            let module = module_of(&path);
            let (tokens, modules) = without_tests(&tokens(&text));
            tests.extend(modules.into_iter().map(|name| [&module[..], &[name]].concat()));
            sources.push(Source { path, module, tokens });
        }
        sources.retain(|source| !tests.iter().any(|test| source.module.starts_with(test)));
        let parents = sources.iter().filter_map(|source| source.module.split_last());
        let folders = parents.map(|(_, parents)| parents.to_vec()).collect();
        Self { name: name.to_owned(), sources, folders }
    }

    /// Whether the file is `lib.rs`, `main.rs`, or in front of a module folder.
    fn is_front(&self, source: &Source) -> bool {
        source.module.is_empty() || self.folders.contains(&source.module)
    }
}

/// The kind of block that an open brace starts.
#[derive(PartialEq)]
enum Block {
    Module,
    Function,
    Other,
}

/// For each token, the number of modules and the number of functions of this file that contain it.
fn nesting(tokens: &[Placed]) -> Vec<(usize, usize)> {
    let mut blocks: Vec<Block> = Vec::new();
    let (mut next, mut brackets) = (Block::Other, 0);
    let mut all = Vec::with_capacity(tokens.len());
    for (at, placed) in tokens.iter().enumerate() {
        let count = |kind| blocks.iter().filter(|block| **block == kind).count();
        all.push((count(Block::Module), count(Block::Function)));
        match &placed.token {
            Token::Word(word) if word == "mod" => next = Block::Module,
            // A function has a name after `fn`; a function pointer type does not.
            Token::Word(word)
                if word == "fn" && tokens.get(at + 1).is_some_and(|name| name.word().is_some()) =>
            {
                (next, brackets) = (Block::Function, 0);
            }
            Token::Sign('(' | '[') => brackets += 1,
            Token::Sign(')' | ']') => brackets -= 1,
            Token::Sign(';') if brackets == 0 => next = Block::Other,
            Token::Sign('{') => blocks.push(std::mem::replace(&mut next, Block::Other)),
            Token::Sign('}') => drop(blocks.pop()),
            _ => {}
        }
    }
    all
}

fn path_follows(tokens: &[Placed], at: usize) -> bool {
    matches!(tokens.get(at..at + 2), Some([a, b]) if a.is(':') && b.is(':'))
}

/// The first word of the path at `at`, or the first words of the paths in a group in braces.
fn first_words(tokens: &[Placed], at: usize) -> Vec<(&str, usize)> {
    let Some(first) = tokens.get(at) else { return Vec::new() };
    if !first.is('{') {
        return first.word().map(|word| (word, first.line)).into_iter().collect();
    }
    let (mut words, mut index) = (Vec::new(), at + 1);
    let end = past_bracket(tokens, at) - 1;
    let mut starts = true;
    while index < end {
        if tokens[index].is('{') {
            index = past_bracket(tokens, index);
            continue;
        }
        if let Some(word) = tokens[index].word().filter(|_| starts) {
            words.push((word, tokens[index].line));
        }
        starts = tokens[index].is(',');
        index += 1;
    }
    words
}

/// The names that a file uses from the root of its crate, with their lines.
fn asked_of_root(source: &Source) -> Vec<(&str, usize)> {
    let tokens = &source.tokens;
    let mut asked = Vec::new();
    let nesting = nesting(tokens);
    let mut at = 0;
    while at < tokens.len() {
        let begins = at < 2 || !path_follows(tokens, at - 2);
        let mut depth = source.module.len() + nesting[at].0;
        let mut end = at;
        match tokens[at].word() {
            Some("crate") if path_follows(tokens, at + 1) => (depth, end) = (0, at + 3),
            Some("super") if begins => {
                while depth > 0
                    && tokens.get(end).and_then(Placed::word) == Some("super")
                    && path_follows(tokens, end + 1)
                {
                    (depth, end) = (depth - 1, end + 3);
                }
            }
            _ => {}
        }
        if end > at && depth == 0 {
            asked.extend(first_words(tokens, end));
        }
        at = end.max(at + 1);
    }
    asked
}

/// Names that the root of the crate re-exports, each with the module that it comes from.
fn passed_on<'a>(front: &'a Source, modules: &BTreeSet<&str>) -> Vec<(&'a str, &'a str)> {
    let tokens = &front.tokens;
    let mut names = Vec::new();
    for (at, placed) in tokens.iter().enumerate() {
        let from_self = tokens.get(at + 1).and_then(Placed::word) == Some("self");
        let at = if from_self && path_follows(tokens, at + 2) { at + 4 } else { at + 1 };
        let module = tokens.get(at).and_then(Placed::word);
        let Some(module) = module.filter(|name| modules.contains(name)) else { continue };
        if placed.word() != Some("use") || !path_follows(tokens, at + 1) {
            continue;
        }
        let end = tokens[at..].iter().position(|token| token.is(';')).map_or(at, |end| at + end);
        names.extend(tokens[at + 3..end].iter().filter_map(Placed::word).map(|n| (n, module)));
    }
    names
}

/// Each group of top-level modules that use one another, with one line for each use.
pub(crate) fn cycles(krate: &Crate) -> Vec<Finding> {
    let top = krate.sources.iter().filter_map(|source| source.module.first());
    let modules: BTreeSet<&str> = top.map(String::as_str).collect();
    let fronts = krate.sources.iter().filter(|source| source.module.is_empty());
    let names: Vec<(&str, &str)> = fronts.flat_map(|one| passed_on(one, &modules)).collect();
    let mut uses: BTreeMap<(&str, &str), String> = BTreeMap::new();
    for source in krate.sources.iter().filter(|source| !source.module.is_empty()) {
        let user = source.module[0].as_str();
        for (word, line) in asked_of_root(source) {
            // A feature may decide from which of two modules a name comes.
            let through = names.iter().filter(|(name, _)| *name == word).map(|(_, used)| *used);
            for used in modules.get(word).copied().into_iter().chain(through) {
                let place = || format!("    {user} -> {used}: {}:{line}", source.path);
                uses.entry((user, used)).or_insert_with(place);
            }
        }
    }
    let reach = reach(&modules, &uses);
    let together = |a: &str, b: &str| reach.contains(&(a, b)) && reach.contains(&(b, a));
    let mut seen = BTreeSet::new();
    let mut findings = Vec::new();
    for &module in &modules {
        let ring: Vec<&str> = modules
            .iter()
            .filter(|other| **other != module && together(module, other))
            .copied()
            .collect();
        if ring.is_empty() || !seen.insert(module) {
            continue;
        }
        seen.extend(&ring);
        let inside = uses.iter().filter(|((a, b), _)| {
            a != b && together(a, b) && (module == *a || together(module, a))
        });
        let places: Vec<&str> = inside.map(|(_, place)| place.as_str()).collect();
        let words = format!("{}: {module}, {}\n{}", krate.name, ring.join(", "), places.join("\n"));
        findings.push(Finding { of: krate.name.clone(), words });
    }
    findings
}

/// All pairs of modules in which the first uses the second, directly or through other modules.
fn reach<'a>(
    modules: &BTreeSet<&'a str>,
    uses: &BTreeMap<(&'a str, &'a str), String>,
) -> BTreeSet<(&'a str, &'a str)> {
    let mut reach: BTreeSet<(&str, &str)> = uses.keys().copied().collect();
    for &through in modules {
        let before: Vec<&str> =
            reach.iter().filter(|(_, used)| *used == through).map(|(user, _)| *user).collect();
        let after: Vec<&str> =
            reach.iter().filter(|(user, _)| *user == through).map(|(_, used)| *used).collect();
        for &user in &before {
            reach.extend(after.iter().map(|used| (user, *used)));
        }
    }
    reach
}

/// The dependencies of a manifest on crates of this workspace that the table does not allow,
/// without dev-dependencies. The table omits the prefix `thalweg-`.
pub(crate) fn dependencies(
    user: &str,
    path: &str,
    manifest: &str,
    allowed: Option<&[&str]>,
) -> Vec<Finding> {
    let Some(allowed) = allowed else {
        let words = format!("{path}: {user} is not in the table of crates");
        return vec![Finding { of: user.to_owned(), words }];
    };
    let mut counts = false;
    let mut findings = Vec::new();
    for (index, line) in manifest.lines().enumerate() {
        if line.starts_with('[') {
            counts = line.contains("dependencies") && !line.contains("dev-dependencies");
        }
        let used = line.split(['.', ' ', '=']).next().unwrap_or_default();
        let ours = used == "thalweg" || used.starts_with("thalweg-");
        let short = used.trim_start_matches("thalweg").trim_start_matches('-');
        if counts && ours && !allowed.contains(&short) {
            let words = format!("{path}:{}: {user} may not use {used}", index + 1);
            findings.push(Finding { of: format!("{user} -> {used}"), words });
        }
    }
    findings
}

pub(crate) fn wide_lines(krate: &str, path: &str, text: &str) -> Vec<Finding> {
    let widths = text.lines().map(|line| line.chars().count()).enumerate();
    let wide = widths.filter(|(_, width)| *width > 100);
    let words = |(index, width)| format!("{path}:{}: {width} wide", index + 1);
    wide.map(|at| Finding { of: krate.to_owned(), words: words(at) }).collect()
}

/// Places that start threads.
pub(crate) fn threads(krate: &Crate) -> Vec<Finding> {
    let mut findings = Vec::new();
    for source in &krate.sources {
        for (at, placed) in source.tokens.iter().enumerate() {
            if placed.word() != Some("thread") || !path_follows(&source.tokens, at + 1) {
                continue;
            }
            let words = first_words(&source.tokens, at + 3).into_iter();
            let starts = words.filter(|(word, _)| ["spawn", "scope", "Builder"].contains(word));
            findings
                .extend(starts.map(|(word, line)| {
                    Finding::at(&source.path, line, format!("thread::{word}"))
                }));
        }
    }
    findings
}

/// Places that test for the feature of libhdf5 within a function, or in a file that is not the
/// front of a module folder.
pub(crate) fn features(krate: &Crate) -> Vec<Finding> {
    let mut findings = Vec::new();
    for source in &krate.sources {
        let nesting = nesting(&source.tokens);
        for (at, three) in source.tokens.windows(3).enumerate() {
            let is_ours = |text: &str| text == "hdf5" || text == "libhdf5";
            let asks = three[0].word() == Some("feature")
                && three[1].is('=')
                && matches!(&three[2].token, Token::Text(text) if is_ours(text));
            let within = nesting[at].1 > 0;
            if asks && (within || !krate.is_front(source)) {
                let place = if within { "within a function" } else { "behind the front" };
                findings.push(Finding::at(&source.path, three[0].line, place));
            }
        }
    }
    findings
}
