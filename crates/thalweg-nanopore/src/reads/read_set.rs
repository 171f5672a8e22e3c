//! Reading many files as one data set.

use std::collections::HashMap;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use arrow_schema::SchemaRef;
use thalweg_io::open::open_files;
use thalweg_io::pool::try_map;
use thalweg_io::urls::url;
use thalweg_io::{Error, Result};

use super::ahead::Ahead;
use super::columns::{Signal, Table};
use super::find::find;
use super::{
    Batch, BatchOptions, Options, Order, Read, ReadFile, Selection, StoreKind, Strings, Summary,
    Visitor,
};
use crate::file::missing_reads;
use crate::record::Header;

/// The most files that stay open. For other files only the header is kept, and they are opened
/// again when they are read, because a data set may have more files than a process may open.
const MOST_OPEN: usize = 64;

/// Objects at URLs that are opened at the same time. Each takes a request, which is waited for.
const OPENED_AT_ONCE: usize = 32;

/// The header, or the one `before` it if the two are equal. The files of a run often have equal
/// headers, which would take most of the memory of a data set of many files.
fn shared(header: &Arc<Header>, before: Option<&Arc<Header>>) -> Arc<Header> {
    before.filter(|before| *before == header).unwrap_or(header).clone()
}

/// Files of reads as one data set, read one after the other in the order of their paths.
///
/// Each file keeps its own header: the number of a read group is valid within its file. Batches
/// have the auxiliary fields of all files. A field that a file does not have is null. The labels of
/// an enumeration are merged. A field with different types in different files is an error.
///
/// ```
/// use thalweg_io::open::Options;
/// use thalweg_nanopore::reads::{ReadSet, Selection};
/// # use thalweg_nanopore::{synth::{Recipe, Synth}, write::Coding};
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let folder = tempfile::tempdir()?;
/// # let recipe = Recipe { reads: 3, mean_length: 2000.0, ..Recipe::default() };
/// # Synth::new(recipe)?.write(&folder.path().join("a.slow5"), Coding::Slow5)?;
/// let set = ReadSet::open([folder.path()], Options::default())?;
/// for batch in set.batches(&Selection::All)? {
///     println!("{} reads", batch?.num_rows());
/// }
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone)]
pub struct ReadSet(Arc<Files>);

#[derive(Debug)]
struct Files {
    files: Vec<SetMember>,
    options: Options,
    ahead: Ahead,
}

#[derive(Debug, Clone)]
struct SetMember {
    path: PathBuf,
    name: Arc<str>,
    /// The header on opening.
    first: Arc<Header>,
    /// The header on opening or, if the file does not stay open, the header of all reads.
    header: Arc<Header>,
    bytes: u64,
    open: Option<Arc<ReadFile>>,
}

impl SetMember {
    fn new(path: &Path, file: ReadFile, stays: bool) -> Self {
        let header = if stays { &file.file.header } else { file.whole_header() };
        Self {
            path: path.to_owned(),
            name: file.file.name().clone(),
            first: file.file.header.clone(),
            header: header.clone(),
            bytes: file.file.store.size(),
            open: stays.then(|| Arc::new(file)),
        }
    }

    fn header(&self) -> &Header {
        self.open.as_ref().map_or(&*self.header, |file| file.header())
    }
}

impl Files {
    fn file(&self, index: usize) -> Result<Arc<ReadFile>> {
        let member = self
            .files
            .get(index)
            .ok_or_else(|| Error::Usage(format!("no file number {index}").into()))?;
        let known = self.ahead.take(index);
        self.open_ahead(index);
        match &member.open {
            Some(file) => Ok(file.clone()),
            None => {
                // Other work, which was cancelled, may have begun to open it.
                let opened = known.map(|opening| opening.join());
                let file = match opened.filter(|file| !matches!(file, Err(Error::Cancelled))) {
                    Some(file) => file?,
                    None => ReadFile::open(&member.path, self.options.clone())?,
                };
                if *file.file.header != *member.first {
                    return Err(Error::Malformed {
                        file: member.name.clone(),
                        what: "header".into(),
                        offset: 0,
                        found: "another than when the data set was opened".into(),
                        expected: "a file that nobody changes while it is read".into(),
                    });
                }
                Ok(Arc::new(file))
            }
        }
    }

    /// Starts opening the objects that follow a file.
    fn open_ahead(&self, index: usize) {
        self.ahead.follow(index, |next| {
            let member = self.files.get(next)?;
            let is_slow = member.open.is_none() && url(&member.path).is_some();
            is_slow.then(|| (member.path.clone(), self.options.clone()))
        });
    }
}

/// The files that contain some reads.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Located<'a> {
    /// The number of each file and the ids that it has, in the order of the request. Files without
    /// any of the ids are left out.
    pub files: Vec<(usize, Vec<String>)>,
    /// The ids that no file has.
    pub missing: Vec<&'a str>,
}

/// The number of a file, and the reads to read from it.
type Turn = (usize, Selection);

impl ReadSet {
    /// Opens the files that [`find`] finds, and reads their headers.
    ///
    /// # Errors
    /// Those of [`find`] and [`ReadFile::open`].
    pub fn open<P: AsRef<Path>>(
        paths: impl IntoIterator<Item = P>,
        options: Options,
    ) -> Result<Self> {
        Self::open_with(paths, None, options)
    }

    /// Opens the files that [`find`] finds. If `known` is one of them, it is not opened again.
    ///
    /// # Errors
    /// Those of [`ReadSet::open`].
    pub fn open_with<P: AsRef<Path>>(
        paths: impl IntoIterator<Item = P>,
        known: Option<ReadFile>,
        options: Options,
    ) -> Result<Self> {
        let found = find(paths, &options.control)?;
        let mut files: Vec<SetMember> = Vec::with_capacity(found.len());
        let most_open = open_files(MOST_OPEN);
        let known = Mutex::new(known);
        let open = |(index, path): (usize, &PathBuf)| {
            let is_it = |file: &mut ReadFile| {
                file.file.path.as_deref().map(Path::as_os_str) == Some(path.as_os_str())
            };
            let known = known.lock().unwrap_or_else(PoisonError::into_inner).take_if(is_it);
            let file = known.map_or_else(|| ReadFile::open(path, options.clone()), Ok)?;
            // A file in memory was read completely, and needs no descriptor.
            let stays = index < most_open || options.store == StoreKind::Memory;
            Ok(SetMember::new(path, file, stays))
        };
        for paths in found.chunks(most_open) {
            let wait = paths.iter().any(|path| url(path).is_some());
            let threads = if wait { OPENED_AT_ONCE } else { 1 };
            let numbered = (files.len()..).zip(paths).collect::<Vec<_>>();
            for member in try_map(threads, numbered, open)? {
                let before = files.last();
                files.push(SetMember {
                    first: shared(&member.first, before.map(|before| &before.first)),
                    header: shared(&member.header, before.map(|before| &before.header)),
                    ..member
                });
            }
        }
        Ok(Self(Arc::new(Files { files, options, ahead: Ahead::default() })))
    }

    /// A set of one open file, which stays open. It may be one without a path.
    pub fn of(file: ReadFile, options: Options) -> Self {
        let path = file.file.path.clone().unwrap_or_else(|| PathBuf::from(&**file.file.name()));
        let files = vec![SetMember::new(&path, file, true)];
        Self(Arc::new(Files { files, options, ahead: Ahead::default() }))
    }

    /// The options that files are opened with.
    pub fn options(&self) -> &Options {
        &self.0.options
    }

    /// The paths of the files, in the order of reading.
    pub fn paths(&self) -> impl ExactSizeIterator<Item = &Path> {
        self.0.files.iter().map(|file| file.path.as_path())
    }

    /// The headers of the files, in the order of reading.
    pub fn headers(&self) -> impl ExactSizeIterator<Item = &Header> {
        self.0.files.iter().map(SetMember::header)
    }

    /// The header of a file.
    ///
    /// # Errors
    /// [`Error::Usage`] if there is no file with this number.
    pub fn header(&self, index: usize) -> Result<&Header> {
        let header = self.headers().nth(index);
        header.ok_or_else(|| Error::Usage(format!("no file number {index}").into()))
    }

    /// The number of reads. Files of SLOW5 and BLOW5 say it in their index, which is made if there
    /// is none.
    ///
    /// # Errors
    /// Those of [`ReadFile::known_reads`] and [`ReadFile::read_ids`].
    pub fn count(&self) -> Result<u64> {
        let count = |index| {
            let file = self.file(index)?;
            Ok(match file.known_reads()? {
                Some(count) => count,
                None => file.read_ids()?.len() as u64,
            })
        };
        (0..self.0.files.len()).map(count).sum()
    }

    /// A file of the set.
    ///
    /// # Errors
    /// [`Error::Usage`] if there is no file with this number; those of [`ReadFile::open`].
    pub fn file(&self, index: usize) -> Result<Arc<ReadFile>> {
        self.0.file(index)
    }

    /// A range of the files, by number from 0, as a set.
    #[must_use]
    pub fn part(&self, files: Range<usize>) -> Self {
        let files = self.0.files.iter().skip(files.start).take(files.len()).cloned().collect();
        let options = self.0.options.clone();
        Self(Arc::new(Files { files, options, ahead: Ahead::default() }))
    }

    /// Paths and warnings ([`ReadFile::note`]) of the files that stay open.
    pub fn notes(&self) -> impl Iterator<Item = (&Path, &str)> {
        self.0
            .files
            .iter()
            .filter_map(|file| Some((file.path.as_path(), file.open.as_ref()?.note()?)))
    }

    /// The total size of all files, in bytes.
    pub fn bytes(&self) -> u64 {
        self.0.files.iter().map(|file| file.bytes).sum()
    }

    /// The columns of batches.
    ///
    /// # Errors
    /// [`Error::Unsupported`] if a field has different types in different files.
    pub fn schema(&self, options: BatchOptions) -> Result<SchemaRef> {
        Ok(self.table(options.strings, options.signal())?.schema)
    }

    /// The columns of [`ReadSet::scan`] without `file` and attributes.
    ///
    /// # Errors
    /// Those of [`ReadSet::schema`].
    pub fn scan_schema(&self, strings: Strings) -> Result<SchemaRef> {
        Ok(self.table(strings, Signal::Length)?.schema)
    }

    fn table(&self, strings: Strings, signal: Signal) -> Result<Table> {
        Table::new(self.0.files.iter().map(|file| (&file.name, file.header())), strings, signal)
    }

    /// Calls a visitor with every selected read, like [`ReadFile::visit`]. There are as many
    /// visitors as workers, independent of the number of files. A read's ordinal is its position in
    /// its file, or among the ids found there.
    ///
    /// # Errors
    /// Those of [`ReadFile::visit`]; [`Error::NotFound`] about ids that no file has.
    pub fn visit<V: Visitor>(
        &self,
        selection: &Selection,
        visitor: impl Fn() -> V + Send + Sync + 'static,
    ) -> Result<(Vec<V>, Summary)> {
        let idle = Arc::new(Mutex::new(Vec::new()));
        let visitor = Arc::new(visitor);
        let mut summary = Summary::default();
        for (index, selection) in self.turns(selection, false)? {
            let idle_here = idle.clone();
            let new = visitor.clone();
            let take = move || {
                let used = idle_here.lock().unwrap_or_else(PoisonError::into_inner).pop();
                used.unwrap_or_else(|| new())
            };
            let (visitors, part) = self.0.file(index)?.visit(&selection, take)?;
            idle.lock().unwrap_or_else(PoisonError::into_inner).extend(visitors);
            summary = summary.then(&part);
        }
        let visitors = std::mem::take(&mut *idle.lock().unwrap_or_else(PoisonError::into_inner));
        Ok((visitors, summary))
    }

    /// Fetches the selected reads without decoding them, like [`ReadFile::fetch`].
    ///
    /// # Errors
    /// Those of [`ReadFile::fetch`]; [`Error::NotFound`] about ids that no file has.
    pub fn fetch(&self, selection: &Selection) -> Result<Summary> {
        let turns = self.turns(selection, false)?;
        turns.into_iter().try_fold(Summary::default(), |sum, (index, selection)| {
            Ok(sum.then(&self.0.file(index)?.fetch(&selection)?))
        })
    }

    /// Calls `f` with each selected read, and yields the results like [`ReadFile::map`]: file after
    /// file, or in the order of the ids. A list of ids that often changes between files is slow;
    /// sort it by file, or use [`ReadSet::visit`].
    ///
    /// # Errors
    /// Those of [`ReadFile::map`]; [`Error::NotFound`] about ids that no file has.
    pub fn map<T: Send + 'static, F: Fn(&Read<'_>) -> T + Send + Sync + 'static>(
        &self,
        selection: &Selection,
        f: F,
    ) -> Result<impl Iterator<Item = Result<T>> + use<T, F>> {
        let f = Arc::new(f);
        let files = self.0.clone();
        let start = move |(index, selection): Turn| {
            let f = f.clone();
            files.file(index)?.map(&selection, move |read| f(read))
        };
        Ok(InTurn::new(self.turns(selection, true)?, start))
    }

    /// The selected reads as Arrow batches, like [`ReadFile::batches`]. [`Batch::file`] is the
    /// number of the batch's file.
    ///
    /// # Errors
    /// Those of [`ReadFile::batches`]; [`Error::NotFound`] about ids that no file has;
    /// [`Error::Unsupported`] if a field has different types in different files.
    pub fn batches(
        &self,
        selection: &Selection,
    ) -> Result<impl Iterator<Item = Result<Batch>> + use<>> {
        self.batches_with(selection, BatchOptions::default())
    }

    /// The selected reads as Arrow batches, in another order or with other columns.
    ///
    /// # Errors
    /// Those of [`ReadSet::batches`].
    pub fn batches_with(
        &self,
        selection: &Selection,
        options: BatchOptions,
    ) -> Result<impl Iterator<Item = Result<Batch>> + use<>> {
        self.tabulate(selection, options, options.signal())
    }

    /// The selected reads as batches without samples, like [`ReadFile::scan`].
    ///
    /// # Errors
    /// Those of [`ReadSet::batches`].
    pub fn fields(
        &self,
        selection: &Selection,
        options: BatchOptions,
    ) -> Result<impl Iterator<Item = Result<Batch>> + use<>> {
        self.tabulate(selection, options, Signal::Length)
    }

    /// Batches of all files with the same columns.
    pub(super) fn tabulate(
        &self,
        selection: &Selection,
        options: BatchOptions,
        signal: Signal,
    ) -> Result<impl Iterator<Item = Result<Batch>> + use<>> {
        let table = Arc::new(self.table(options.strings, signal)?);
        let files = self.0.clone();
        let start = move |(index, selection): Turn| {
            files.file(index)?.batches_of(&selection, &table, options.order, index)
        };
        Ok(InTurn::new(self.turns(selection, options.order == Order::Selection)?, start))
    }

    /// The sequence of files to read, with the reads of each. If `ordered`, successive ids of the
    /// same file are one turn. Otherwise each file has at most one turn.
    fn turns(&self, selection: &Selection, ordered: bool) -> Result<Vec<Turn>> {
        let Selection::Ids(ids) = selection else {
            return Ok((0..self.0.files.len()).map(|index| (index, Selection::All)).collect());
        };
        if let [_] = &*self.0.files {
            return Ok(vec![(0, selection.clone())]);
        }
        let homes = self.homes(ids)?;
        let missing: Vec<&str> = ids
            .iter()
            .zip(&homes)
            .filter(|(_, home)| home.is_none())
            .map(|(id, _)| id.as_str())
            .collect();
        self.found_all(ids.len(), &missing)?;
        let mut order: Vec<usize> = (0..ids.len()).collect();
        if !ordered {
            order.sort_by_key(|&i| homes.get(i).copied().flatten());
        }
        let mut turns: Vec<(usize, Vec<String>)> = Vec::new();
        for i in order {
            let (Some(id), Some(Some(home))) = (ids.get(i), homes.get(i)) else { continue };
            match turns.last_mut() {
                Some((index, ids)) if index == home => ids.push(id.clone()),
                _ => turns.push((*home, vec![id.clone()])),
            }
        }
        Ok(turns.into_iter().map(|(index, ids)| (index, Selection::Ids(Arc::new(ids)))).collect())
    }

    /// The first file that has each id.
    fn homes(&self, ids: &[String]) -> Result<Vec<Option<usize>>> {
        let mut places: HashMap<&str, Vec<usize>> = HashMap::new();
        for (i, id) in ids.iter().enumerate() {
            places.entry(id).or_default().push(i);
        }
        let mut homes = vec![None; ids.len()];
        for index in 0..self.0.files.len() {
            if places.is_empty() {
                break;
            }
            let asked: Vec<&str> = places.keys().copied().collect();
            let has = self.0.file(index)?.has(&asked)?;
            let found: HashMap<&str, bool> = asked.into_iter().zip(has).collect();
            places.retain(|id, wanted| {
                let here = found.get(id).copied().unwrap_or_default();
                if here {
                    for &i in wanted.iter() {
                        if let Some(home) = homes.get_mut(i) {
                            *home = Some(index);
                        }
                    }
                }
                !here
            });
        }
        Ok(homes)
    }

    /// Finds the file of each read, and the ids that no file has. If several files have a read, the
    /// first counts.
    ///
    /// # Errors
    /// Those of [`ReadFile::index`].
    pub fn locate<'a>(&self, ids: &'a [String]) -> Result<Located<'a>> {
        let mut files: Vec<(usize, Vec<String>)> =
            (0..self.0.files.len()).map(|file| (file, Vec::new())).collect();
        let mut missing = Vec::new();
        for (id, home) in ids.iter().zip(self.homes(ids)?) {
            match home.and_then(|file| files.get_mut(file)) {
                Some((_, ids)) => ids.push(id.clone()),
                None => missing.push(id.as_str()),
            }
        }
        files.retain(|(_, ids)| !ids.is_empty());
        Ok(Located { files, missing })
    }

    /// Fails with an error that names some of the missing reads, if there are any.
    fn found_all(&self, reads: usize, missing: &[&str]) -> Result<()> {
        if missing.is_empty() {
            return Ok(());
        }
        let elsewhere = thalweg_io::cache_folder().map_or_else(String::new, |folder| {
            format!(", or in {}", folder.join("index").display())
        });
        Err(Error::NotFound {
            file: files_in_words(self.0.files.len()).into(),
            what: missing_reads(missing, reads).into(),
            advice: format!(
                "check the ids; if a file has changed, delete its index (FILE.idx{elsewhere})"
            )
            .into(),
        })
    }
}

/// Runs iterators one after the other. It ends after the first error.
struct InTurn<I, S> {
    turns: std::vec::IntoIter<Turn>,
    start: S,
    current: Option<I>,
}

impl<I, S> InTurn<I, S> {
    fn new(turns: Vec<Turn>, start: S) -> Self {
        Self { turns: turns.into_iter(), start, current: None }
    }
}

impl<T, I, S> Iterator for InTurn<I, S>
where
    I: Iterator<Item = Result<T>>,
    S: FnMut(Turn) -> Result<I>,
{
    type Item = Result<T>;

    fn next(&mut self) -> Option<Result<T>> {
        loop {
            let failed = match self.current.as_mut().and_then(Iterator::next) {
                Some(Ok(item)) => return Some(Ok(item)),
                Some(Err(error)) => Some(error),
                None => {
                    // Frees the memory of the last iterator before the next one allocates.
                    self.current = None;
                    match (self.start)(self.turns.next()?) {
                        Ok(iterator) => {
                            self.current = Some(iterator);
                            None
                        }
                        Err(error) => Some(error),
                    }
                }
            };
            if let Some(error) = failed {
                self.turns = Vec::new().into_iter();
                self.current = None;
                return Some(Err(error));
            }
        }
    }
}

/// A number of files in words.
pub(super) fn files_in_words(count: usize) -> String {
    if count == 1 { "1 file".into() } else { format!("{count} files") }
}
