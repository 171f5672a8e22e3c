//! Writes synthetic reads: signal as BLOW5 or POD5, bases as FASTQ.

use std::path::Path;

use thalweg::codec::deflate;
use thalweg::format::slow5::Header;
use thalweg::new_file::NewFile;
use thalweg::reads::{KeepIndex, places_to_keep};
use thalweg::synth::{Basecalls, Synth, SynthRead};
use thalweg::write::Coding;
use thalweg::{Error, Fault, Result};
use thalweg_io::urls;

use super::{bar, in_order};

/// Writes nanopore signal, and its index where the format has one.
pub(super) fn signal(
    path: &Path,
    synth: &Synth,
    header: &Header,
    coding: Coding,
    keep: KeepIndex,
    stopped: &dyn Fn() -> bool,
) -> Result<()> {
    let failed = |fault: Fault| {
        let message =
            format!("{}: {}, expected {}", urls::shown_path(path), fault.found, fault.expected);
        Error::Usage(message.into())
    };
    let target = coding.target(header).map_err(failed)?;
    let mut out = target.create(path)?;
    let bar = bar((synth.recipe().reads as f64 * synth.recipe().mean_length) as u64 * 2);
    let make = || {
        let target = &target;
        let mut encoder = coding.encoder();
        let mut read = SynthRead::default();
        let mut aux = Vec::new();
        move |i| {
            synth.read(i, &mut read);
            let encoder = encoder.as_mut().map_err(|fault| fault.clone())?;
            let record = read.record(header, &mut aux)?;
            Ok::<_, Fault>((read.samples.len(), encoder.encode(target, &record, &read.samples)?))
        }
    };
    in_order(path, synth.recipe().reads, make, stopped, |made| {
        let (samples, read) = made.map_err(failed)?;
        out.push(read)?;
        bar.inc(samples as u64 * 2);
        Ok(())
    })?;
    let index = out.finish()?.index;
    match index.zip(places_to_keep(path, keep).next()) {
        Some((index, place)) => thalweg::write::save_sidecar(&index, &place),
        None => Ok(()),
    }
}

/// The default level of gzip(1).
const GZIP_LEVEL: i32 = 6;
/// Records of one gzip member.
const RECORDS_PER_MEMBER: u64 = 64;

/// Writes basecalled reads.
pub(super) fn fastq(
    path: &Path,
    bases: u64,
    seed: u64,
    gzip: bool,
    stopped: &dyn Fn() -> bool,
) -> Result<()> {
    let calls = Basecalls::with_bases(seed, bases)?;
    let mut out = NewFile::create(path)?;
    let bar = bar(bases * 2);
    let make = || {
        let calls = &calls;
        let mut packer = deflate::DeflateCompressor::new(GZIP_LEVEL);
        move |member: u64| {
            let mut text = Vec::new();
            let first = member * RECORDS_PER_MEMBER;
            for i in first..(first + RECORDS_PER_MEMBER).min(calls.reads) {
                calls.record(i, &mut text);
            }
            let mut packed = Vec::new();
            let packer = packer.as_mut().map_err(|fault| fault.clone());
            // A gzip file may have several members, one after the other (RFC 1952, section 2.2).
            let done = if gzip { packer.and_then(|p| p.gzip(&text, &mut packed)) } else { Ok(()) };
            (text, done.map(|()| packed))
        }
    };
    in_order(path, calls.reads.div_ceil(RECORDS_PER_MEMBER), make, stopped, |(text, packed)| {
        let packed = packed.map_err(|fault| {
            Error::Usage(format!("{}: {}", urls::shown_path(path), fault.found).into())
        })?;
        out.push(if gzip { &packed } else { &text })?;
        bar.inc(text.len() as u64);
        Ok(())
    })?;
    out.finish()?;
    Ok(())
}
