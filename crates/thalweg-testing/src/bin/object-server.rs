//! An object store on this machine for measurements. It runs until it is killed.

#![allow(clippy::unwrap_used, clippy::print_stdout)]

use std::io::{self, Write};
use std::path::PathBuf;
use std::time::Duration;

use thalweg_testing::folder_server::{Shape, serve};

const USAGE: &str = "object-server FOLDER [--port N] [--latency-ms P50,P99] [--connection BYTES/S] \
                     [--total BYTES/S] [--refused PART] [--torn PART] [--seed N]";

const HELP: &str = "\
Serves FOLDER/BUCKET/KEY as the object s3://BUCKET/KEY, until it is killed. The address is printed.

  --port N              the port (default: one that is free)
  --latency-ms P50,P99  time to the first byte: the median, and what 99 of 100 answers keep within
  --connection BYTES/S  the rate of one connection
  --total BYTES/S       the rate of all connections together
  --refused PART        the part of the requests that is answered with 503, from 0 to 1
  --torn PART           the part of the answers that end in the middle
  --seed N              other delays for another seed
";

fn main() -> io::Result<()> {
    let wrong = |what: &str| io::Error::other(format!("{what}; usage: {USAGE}"));
    let mut words = std::env::args().skip(1);
    if std::env::args().any(|word| matches!(&*word, "--help" | "-h")) {
        println!("usage: {USAGE}\n\n{HELP}");
        return Ok(());
    }
    let root = PathBuf::from(words.next().ok_or_else(|| wrong("no folder"))?);
    if !root.is_dir() {
        return Err(wrong(&format!("{} is no folder", root.display())));
    }
    let (mut port, mut shape) = (0, Shape::default());
    while let Some(option) = words.next() {
        let value = words.next().ok_or_else(|| wrong(&option))?;
        let number = || value.parse::<f64>().map_err(|_| wrong(&value));
        match option.as_str() {
            "--port" => port = number()? as u16,
            "--connection" => shape.connection = Some(number()?),
            "--total" => shape.total = Some(number()?),
            "--refused" => shape.refused = number()?,
            "--torn" => shape.torn = number()?,
            "--seed" => shape.seed = number()? as u64,
            "--latency-ms" => {
                let (p50, p99) = value.split_once(',').ok_or_else(|| wrong(&value))?;
                let time = |text: &str| {
                    let ms = text.parse::<f64>().map_err(|_| wrong(&value))?;
                    Duration::try_from_secs_f64(ms / 1e3).map_err(|_| wrong(&value))
                };
                shape.latency = Some((time(p50)?, time(p99)?));
            }
            _ => return Err(wrong(&option)),
        }
    }
    let address = serve(&root, port, shape)?;
    println!("http://{address}");
    io::stdout().flush()?;
    loop {
        std::thread::park();
    }
}
