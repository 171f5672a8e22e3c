//! Finds the banks, logs and entries (measurements) of a NeXus file.

use std::collections::{HashMap, HashSet};

use thalweg_io::{Error, Result};

use super::defects::{Defect, EventFinding, finding};
use super::number::NumericType;
use super::time::{Unit, parse_iso};
use super::{Bank, ColumnDataset, EventColumn, Log, Nexus, NexusEntry, text};
use crate::arrays::{ArrayFile, Dataset, MOST_GROUP_LEVELS};
use crate::metadata::{Node, NodeLink};
use crate::types::Value;

/// A group's attributes and links.
struct NexusGroup<'a> {
    file: &'a ArrayFile,
    path: &'a str,
    class: Option<String>,
    links: &'a [NodeLink],
}

impl<'a> Nexus<'a> {
    /// Finds the banks, logs and measurements of a file. A group with several names counts once,
    /// under the first name. [`Nexus::unreadable`] has the defects of groups, which hide no others.
    ///
    /// # Errors
    /// [`Error::Io`] and [`Error::Cancelled`].
    pub fn find(file: &'a ArrayFile) -> Result<Self> {
        let mut nexus = Self {
            file,
            banks: Vec::new(),
            logs: Vec::new(),
            unread_logs: Vec::new(),
            unreadable: Vec::new(),
            entries: Vec::new(),
        };
        let root = file.metadata().root();
        // All groups and datasets are found together.
        file.metadata().find_below(vec![root.address()])?;
        // Addresses of groups that hold a bank's events, because links may lead to datasets too.
        let mut seen = HashSet::from([root.address()]);
        let mut events = HashSet::new();
        let mut links: Vec<(NodeLink, usize)> = Vec::new();
        let mut next = Some((root, 0));
        while let Some((node, level)) = next.take() {
            file.options().control.check()?;
            if level < MOST_GROUP_LEVELS {
                match nexus.look(&node, &mut events) {
                    // Links are popped from the end, so they are in reverse order.
                    Ok(below) => {
                        links.extend(below.into_iter().rev().map(|link| (link, level + 1)));
                    }
                    Err(error) => nexus.keep(error)?,
                }
            }
            next = loop {
                let Some((link, level)) = links.pop() else { break None };
                if !events.contains(&link.address) && seen.insert(link.address) {
                    break Some((file.metadata().follow(&link), level));
                }
            };
        }
        nexus.name_banks();
        nexus.count_from_starts();
        Ok(nexus)
    }

    /// Looks into a node, and returns its links; none if it is no group.
    fn look(&mut self, node: &Node, events: &mut HashSet<u64>) -> Result<Vec<NodeLink>> {
        if !node.is_group()? {
            return Ok(Vec::new());
        }
        let links = node.links()?;
        // What is below a bank or log with a defect is looked at all the same.
        self.group(node, &links, events).or_else(|error| self.keep(error))?;
        Ok(links)
    }

    /// Keeps the defect of an object. Another error ends the search.
    fn keep(&mut self, error: Error) -> Result<()> {
        match error {
            Error::Cancelled | Error::Io { .. } => Err(error),
            defect => {
                self.unreadable.push(defect);
                Ok(())
            }
        }
    }

    fn group(&mut self, node: &Node, links: &[NodeLink], events: &mut HashSet<u64>) -> Result<()> {
        let class = words(node.class()?);
        let group = NexusGroup { file: self.file, path: node.path(), class, links };
        let has = |name: &str| group.link(name).is_some();
        match group.class.as_deref() {
            Some("NXentry") => self.entries.push(NexusEntry {
                path: group.path.to_owned(),
                start_time: group.text("start_time")?,
                title: group.text("title")?,
            }),
            Some("NXevent_data") => self.bank(&group, events)?,
            _ if has("event_time_offset") && (has("event_id") || has("event_index")) => {
                self.bank(&group, events)?;
            }
            Some("NXlog") => self.add_log(&group)?,
            None if has("time") && has("value") => self.add_log(&group)?,
            _ => {}
        }
        Ok(())
    }

    fn add_log(&mut self, group: &NexusGroup<'_>) -> Result<()> {
        match group.log()? {
            Ok(log) => self.logs.push(log),
            Err(why) => self.unread_logs.push((group.path.to_owned(), why)),
        }
        Ok(())
    }

    fn bank(&mut self, group: &NexusGroup<'_>, events: &mut HashSet<u64>) -> Result<()> {
        let own =
            ["event_id", "event_time_offset"].map(|name| group.link(name).map(|link| link.address));
        if own.iter().flatten().any(|address| events.contains(address)) {
            return Ok(());
        }
        events.extend(own.iter().flatten());
        self.banks.push(group.bank()?);
        Ok(())
    }

    /// The name of a bank is the last part of its path, if no other bank has the same last part.
    fn name_banks(&mut self) {
        self.banks.sort_by(|a, b| a.path.cmp(&b.path));
        self.logs.sort_by(|a, b| a.path.cmp(&b.path));
        let mut count: HashMap<String, usize> = HashMap::new();
        self.banks.iter().for_each(|bank| *count.entry(bank.name.clone()).or_default() += 1);
        for bank in
            self.banks.iter_mut().filter(|bank| count.get(&bank.name).is_some_and(|&n| n > 1))
        {
            bank.name = bank.path.trim_start_matches('/').to_owned();
        }
    }

    /// Gives logs whose times have no stated start the start of their measurement.
    fn count_from_starts(&mut self) {
        let starts: Vec<(String, i64)> = self
            .entries
            .iter()
            .filter_map(|entry| {
                Some((format!("{}/", entry.path.trim_end_matches('/')), entry.start()?))
            })
            .collect();
        let start_of = |path: &str| {
            starts
                .iter()
                .find(|(entry, _)| path.starts_with(entry.as_str()))
                .map(|(_, start)| *start)
        };
        for bank in &mut self.banks {
            let Some(finding) =
                bank.findings.iter_mut().find(|finding| finding.defect == Defect::Epoch)
            else {
                continue;
            };
            if let Some(start) = start_of(&bank.path) {
                bank.epoch = start;
                finding.done = "times count from the measurement's start_time".into();
            }
        }
        for log in &mut self.logs {
            log.start = log.start.or_else(|| start_of(&log.path));
        }
    }
}

/// The number of events of a bank: the lesser of the lengths of `event_id` and `event_time_offset`.
fn event_count(lens: [Option<u64>; 2], found: &mut Vec<EventFinding>) -> u64 {
    let events = lens.iter().flatten().min().copied().unwrap_or(0);
    match lens {
        [Some(ids), Some(offsets)] if ids != offsets => {
            let words = format!("{ids} entries of event_id, {offsets} of event_time_offset");
            let done = format!("the first {events} are read");
            let expected = "as many of one as of the other";
            found.push(finding(Defect::Lengths, Some(events), words, expected, done));
        }
        [None, None] if !found.iter().any(|finding| finding.defect == Defect::Unusable) => {
            let words = "neither event_id nor event_time_offset";
            let done = "the bank has no events";
            found.push(finding(Defect::Unusable, None, words, "both", done));
        }
        _ => {}
    }
    events
}

/// The text of an attribute, without surrounding white space.
fn words(attribute: Option<Value>) -> Option<String> {
    match attribute {
        Some(Value::Text(text)) => Some(text.trim().to_owned()),
        _ => None,
    }
}

impl NexusGroup<'_> {
    fn link(&self, name: &str) -> Option<&NodeLink> {
        self.links.iter().find(|link| link.name == name)
    }

    fn dataset(&self, name: &str) -> Result<Option<Dataset>> {
        let Some(link) = self.link(name) else { return Ok(None) };
        self.file.dataset(&self.file.metadata().follow(link))
    }

    fn text(&self, name: &str) -> Result<Option<String>> {
        self.dataset(name)?.map_or(Ok(None), |dataset| text(self.file, &dataset))
    }

    /// Finds a dataset that should be a list of numbers.
    fn list(&self, name: &str, found: &mut Vec<EventFinding>) -> Result<Option<ColumnDataset>> {
        let Some(dataset) = self.dataset(name)? else { return Ok(None) };
        match NumericType::list(&dataset) {
            Ok((number, len)) => Ok(Some(ColumnDataset { dataset, number, len })),
            Err(what) => {
                let words = format!("{name}: {what}");
                found.push(finding(
                    Defect::Unusable,
                    None,
                    words,
                    "a list of numbers",
                    "it is left out",
                ));
                Ok(None)
            }
        }
    }

    fn bank(&self) -> Result<Bank> {
        let mut found = Vec::new();
        let mut columns = [None, None, None];
        for column in EventColumn::ALL {
            columns[column as usize] = self.list(column.name(), &mut found)?;
        }
        let [event_id, event_time_offset, event_weight] = &mut columns;
        let event_time_zero = self.list("event_time_zero", &mut found)?;
        let event_index = self.list("event_index", &mut found)?;
        let cue_index = self.list("cue_index", &mut found)?;
        let cue_timestamp_zero = self.list("cue_timestamp_zero", &mut found)?;

        let lens = [&*event_id, event_time_offset].map(|list| list.as_ref().map(|list| list.len));
        let events = event_count(lens, &mut found);
        if let Some(weights) = event_weight.take_if(|weights| weights.len != events) {
            let words = format!("{} entries of event_weight", weights.len);
            let expected = format!("{events}, one for each event");
            let at = Some(weights.len.min(events));
            found.push(finding(
                Defect::Lengths,
                at,
                words,
                expected,
                "they are left out: each event counts for one",
            ));
        }
        // Without an attribute `units`, floating-point values are microseconds and seconds (SNS,
        // ISIS), and integers are nanoseconds (ESS).
        let unit = unit(event_time_offset.as_ref(), Unit::Microsecond, &mut found)?;
        let zeros = event_time_zero.as_ref().or(cue_timestamp_zero.as_ref());
        let zero_unit = self::unit(zeros, Unit::Second, &mut found)?;
        let epoch = match zeros {
            Some(zeros) => epoch(zeros, &mut found)?,
            None => 0,
        };
        let name = self.path.rsplit('/').next().unwrap_or_default().to_owned();
        Ok(Bank {
            path: self.path.to_owned(),
            name: if name.is_empty() { "events".into() } else { name },
            events,
            columns,
            event_time_zero,
            event_index,
            cue_index,
            cue_timestamp_zero,
            unit,
            zero_unit,
            epoch,
            findings: found,
        })
    }

    /// The log, or why it cannot be read.
    fn log(&self) -> Result<Result<Log, String>> {
        let mut found = Vec::new();
        let Some(time) = self.list("time", &mut found)? else {
            let why =
                found.pop().map(|finding| format!("{}, not a list of numbers", finding.found));
            return Ok(Err(why.unwrap_or_else(|| "it has no dataset time".into())));
        };
        let Some(value) = self.dataset("value")? else {
            return Ok(Err("it has no dataset value".into()));
        };
        let of_time = |name| time.dataset.attribute(name).map(words);
        let unit = match of_time("units")? {
            None => usual(time.number, Unit::Second),
            Some(named) => match Unit::parse(&named) {
                Some(unit) => unit,
                None => {
                    let names = Unit::NAMES;
                    return Ok(Err(format!("its times have the units {named:?}, not {names}")));
                }
            },
        };
        let start = match of_time("start")? {
            None => of_time("offset")?,
            start => start,
        };
        Ok(Ok(Log {
            path: self.path.to_owned(),
            unit,
            // Integers without a start count nanoseconds from 1970 (ESS).
            start: start
                .and_then(|start| parse_iso(&start))
                .or((!time.number.is_float()).then_some(0)),
            units: words(value.attribute("units")?),
            time,
            value,
        }))
    }
}

/// The unit of numbers without an attribute `units`.
fn usual(number: NumericType, of_floats: Unit) -> Unit {
    if number.is_float() { of_floats } else { Unit::Nanosecond }
}

/// The unit that a list states, or the usual one.
fn unit(
    list: Option<&ColumnDataset>,
    of_floats: Unit,
    found: &mut Vec<EventFinding>,
) -> Result<Unit> {
    let Some(list) = list else { return Ok(of_floats) };
    let usual = usual(list.number, of_floats);
    let Some(named) = words(list.dataset.attribute("units")?) else { return Ok(usual) };
    Ok(Unit::parse(&named).unwrap_or_else(|| {
        let name = list.dataset.path().rsplit('/').next().unwrap_or_default();
        let what = format!("units {named:?} of {name}");
        found.push(finding(Defect::Unit, None, what, Unit::NAMES, format!("taken for {usual}")));
        usual
    }))
}

/// The time that pulse times count from, in nanoseconds since 1970.
fn epoch(zeros: &ColumnDataset, found: &mut Vec<EventFinding>) -> Result<i64> {
    let offset = words(zeros.dataset.attribute("offset")?);
    if let Some(epoch) = offset.as_deref().and_then(parse_iso) {
        return Ok(epoch);
    }
    // Integers without an offset count from 1970 (ESS).
    if offset.is_some() || zeros.number.is_float() {
        let what =
            offset.map_or("no attribute offset".into(), |offset| format!("the offset {offset:?}"));
        let expected = "the ISO 8601 time that event_time_zero counts from";
        found.push(finding(Defect::Epoch, None, what, expected, "times count from 1970"));
    }
    Ok(0)
}
