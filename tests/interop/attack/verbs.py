"""Every verb, for each kind of file that it takes. Words in braces are paths of the run; `{out}` begins the paths that it may write."""

BUDGET = "32MiB"
MEMORY = ["--memory", BUDGET]
BUDGET_BYTES = 32 << 20
# Of verbs without `--memory`.
DEFAULT_BYTES = 192 << 20
# A slow store, on which a small file still takes no second.
THROTTLE = ["--throttle", "bandwidth=20MB/s,latency=1ms,requests=2000/s,parallel=4"]
# Other ways to the same bytes: the values are the peers'.
STORES_OF_BYTES = {f"digest --store {store}": ["read", "{file}", "--digest", "--store", store, *MEMORY] for store in ("direct", "uring", "mmap")}

READS = {
    "digest": ["read", "{file}", "--digest", *MEMORY],
    "read": ["read", "{file}", "--json", *MEMORY],
    "read --out": ["read", "{file}", "--out", "{out}.arrow", *MEMORY],
    "read --pa": ["read", "{file}", "--out", "{out}.arrow", "--pa", *MEMORY],
    "read --ids": ["read", "{file}", "--ids", "{ids}", "--digest", *MEMORY],
    "read --one-by-one": ["read", "{file}", "--ids", "{ids}", "--one-by-one", *MEMORY],
    "read --explain": ["read", "{file}", "--explain", *MEMORY],
    "info": ["info", "{file}"],
    "info --count": ["info", "{file}", "--count", "--json"],
    "info --run": ["info", "{file}", "--run"],
    "check": ["check", "{file}", *MEMORY],
    "check --salvage": ["check", "{file}", "--salvage", "{out}{ending}", *MEMORY],
    "index": ["index", "{file}", *MEMORY],
    "index -o": ["index", "{file}", "-o", "{out}.idx", *MEMORY],
    "scan": ["scan", "{file}", *MEMORY],
    "scan --tsv": ["scan", "{file}", "--tsv", *MEMORY],
    "scan --out": ["scan", "{file}", "--out", "{out}.parquet", *MEMORY],
    "scan --where": ["scan", "{file}", "--where", "samples >= 40 and not run_id is missing", "--out", "{out}.csv", *MEMORY],
    "filter": ["filter", "{file}", "--where", "samples >= 40", "--out", "{out}.blow5", "--lossy", *MEMORY],
    "filter --ids": ["filter", "{file}", "--ids", "{ids}", "--missing-ok", "--out", "{out}.pod5", "--lossy", *MEMORY],
    "merge": ["merge", "{file}", "--out", "{out}.slow5", "--lossy", *MEMORY],
    "split": ["split", "{file}", "--by", "read_group", "--out", "{out}", "--lossy", *MEMORY],
    "split --reads": ["split", "{file}", "--reads", "2", "--out", "{out}", "--lossy", *MEMORY],
    "plot": ["plot", "{file}", "--out", "{out}.svg", *MEMORY],
    "plot --read": ["plot", "{file}", "--read", "00000002-1111-4222-8333-444444444442", "--out", "{out}.html", *MEMORY],
    "doctor": ["doctor", "{file}", *MEMORY],
    "doctor --json": ["doctor", "{file}", "--json", *MEMORY],
    "evict": ["evict", "{file}"],
    "convert to slow5": ["convert", "{file}", "{out}.slow5", "--lossy", *MEMORY],
    "convert to blow5": ["convert", "{file}", "{out}.blow5", "--lossy", "--verify", *MEMORY],
    "convert to pod5": ["convert", "{file}", "{out}.pod5", "--lossy", "--verify", *MEMORY],
    "convert to fast5": ["convert", "{file}", "{out}.fast5", "--lossy", "--verify", *MEMORY],
    "convert --sort": ["convert", "{file}", "{out}.blow5", "--sort", "--lossy", *MEMORY],
    "convert --per-file": ["convert", "{file}", "{out}", "--per-file", "--to", "pod5", "--lossy", *MEMORY],
    "convert --resume": ["convert", "{file}", "{resumed}", "--per-file", "--resume", "--to", "blow5", "--lossy", *MEMORY],
    "convert --row-samples": ["convert", "{file}", "{out}.pod5", "--row-samples", "7", "--signal-rows", "2", "--reads-rows", "1", "--lossy", "--verify", *MEMORY],
    **STORES_OF_BYTES,
    "digest --throttle": ["read", "{file}", "--digest", *THROTTLE, *MEMORY],
    "scan --columns": ["scan", "{file}", "--columns", "samples,read_id,run_id,channel", "--out", "{out}.tsv", *MEMORY],
    "doctor --measure": ["doctor", "{file}", "--measure", *MEMORY],
    "doctor --model": ["doctor", "{file}", "--model", "hdd", "--json", *MEMORY],
    "probe": ["probe", "{file}", "--budget-s", "0.1"],
}
ARRAYS = {
    "digest": ["read", "{file}", "--digest", *MEMORY],
    "read": ["read", "{file}", *MEMORY],
    "read --json": ["read", "{file}", "--json", *MEMORY],
    "read --arrays": ["read", "{file}", "--arrays", *MEMORY],
    "read PATH": ["read", "{file}", "/contiguous", "/gzip", "--digest", *MEMORY],
    "read --out": ["read", "{file}", "--out", "{out}.npy", *MEMORY],
    "read --select": ["read", "{file}", "--select", "0:2", "--digest", *MEMORY],
    "read --slice": ["read", "{file}", "--slice", "1/3", "--digest", *MEMORY],
    "read --slices": ["read", "{file}", "--slices", "2", *MEMORY],
    "read --explain": ["read", "{file}", "--explain", *MEMORY],
    "info": ["info", "{file}"],
    "info --json": ["info", "{file}", "--json"],
    "check": ["check", "{file}", *MEMORY],
    "index": ["index", "{file}", *MEMORY],
    "index --kerchunk": ["index", "{file}", "--kerchunk", "{out}.json", *MEMORY],
    "doctor": ["doctor", "{file}", *MEMORY],
    "doctor --json": ["doctor", "{file}", "--json", *MEMORY],
    "evict": ["evict", "{file}"],
    "repack": ["convert", "--repack", "{file}", "{out}.h5", *MEMORY],
    "repack --verify": ["convert", "--repack", "{file}", "{out}.h5", "--verify", "--chunk", "16", "--filter", "shuffle+gzip", *MEMORY],
    "events": ["read", "{file}", "--events", *MEMORY],
    "logs": ["read", "{file}", "--logs", *MEMORY],
    "plot": ["plot", "{file}", "--out", "{out}.svg", *MEMORY],
    **STORES_OF_BYTES,
    "digest --throttle": ["read", "{file}", "--digest", *THROTTLE, *MEMORY],
    "digest --gap": ["read", "{file}", "--digest", "--gap", "0", *MEMORY],
    "digest --gap 1GB": ["read", "{file}", "--digest", "--gap", "1GB", *MEMORY],
    "digest --no-index": ["read", "{file}", "--digest", "--no-index", *MEMORY],
    "digest --trusted": ["read", "{file}", "--digest", "--trusted", *MEMORY],
    "read --ranks": ["read", "{file}", "--ranks", "2", *MEMORY],
    "doctor --measure": ["doctor", "{file}", "--measure", *MEMORY],
    "doctor --model": ["doctor", "{file}", "--model", "bandwidth=2GB/s,latency=300us,requests=20000/s,parallel=16", *MEMORY],
    "probe": ["probe", "{file}", "--budget-s", "0.1", "--json"],
    "repack --libver": ["convert", "--repack", "{file}", "{out}.h5", "--libver", "v110", "--verify", *MEMORY],
    "repack --libver earliest": ["convert", "--repack", "{file}", "{out}.h5", "--libver", "earliest", *MEMORY],
}
EVENTS = {
    "events": ["read", "{file}", "--events", "--json", *MEMORY],
    "events --out": ["read", "{file}", "--events", "--out", "{out}.parquet", *MEMORY],
    "events --out npy": ["read", "{file}", "--events", "--out", "{out}.npy", *MEMORY],
    "events --time": ["read", "{file}", "--events", "--time", "0..2", "--tof", "10..9000", "--out", "{out}.arrow", "--order", "file", *MEMORY],
    "events --pulses": ["read", "{file}", "--events", "--pulses", "3..9", "--bank", "bank1*", *MEMORY],
    "logs --out": ["read", "{file}", "--logs", "--out", "{out}.csv", *MEMORY],
    "plot": ["plot", "{file}", "--out", "{out}.html", *MEMORY],
}
NETWORKS = {
    "import": ["graph", "import", "{file}", "{out}", *MEMORY],
    "import --ids raw": ["graph", "import", "{file}", "{out}", "--ids", "raw", "--json", *MEMORY],
    "import into a store": ["graph", "import", "{file}", "{store}", *MEMORY],
}
LISTS = {
    **NETWORKS,
    "import --several": ["graph", "import", "{file}", "{out}", "--several", "--undirected", "--from-type", "x", "--to-type", "y", *MEMORY],
}
STORES = {
    "graph info": ["graph", "info", "{file}", *MEMORY],
    "graph info --json": ["graph", "info", "{file}", "--json", *MEMORY],
    "graph check": ["graph", "check", "{file}", *MEMORY],
    "graph check --repair": ["graph", "check", "{file}", "--repair", "{out}", *MEMORY],
    "neighbors": ["graph", "neighbors", "{file}", "--from", "A", *MEMORY],
    "neighbors --where": ["graph", "neighbors", "{file}", "--from", "A", "--to", "B", "--where", "weight > 3", "--json", *MEMORY],
    "neighbors --hops": ["graph", "neighbors", "{file}", "--from", "A:0-3", "--to", "A", "--hops", "2", *MEMORY],
    "neighbors --digest": ["graph", "neighbors", "{file}", "--from", "B", "--to", "A", "--direction", "both", "--digest", *MEMORY],
    "neighbors --measured": ["graph", "neighbors", "{file}", "--from", "A", "--measured", "--digest", "--repeat", "2", *MEMORY],
    "neighbors --arrays": ["graph", "neighbors", "{file}", "--from", "B", "--direction", "both", "--measured", "--arrays", *THROTTLE, *MEMORY],
    "neighbors --no-map": ["graph", "neighbors", "{file}", "--from", "A", "--unique", "--no-map", *MEMORY],
    "degree": ["graph", "degree", "{file}", "--from", "A", *MEMORY],
    "degree --plot": ["graph", "degree", "{file}", "--from", "A", "--summary", "--plot", "{out}.svg", *MEMORY],
    "add": ["graph", "add", "{file}", "--vertices", "C:30-33", "--edges", "q:4-5,90-91", *MEMORY],
    "remove": ["graph", "remove", "{file}", "--vertices", "C:4", "--edges", "q:2-9", *MEMORY],
    "remove all": ["graph", "remove", "{file}", "--edges", "p", *MEMORY],
    "compact": ["graph", "compact", "{file}", "--json", *MEMORY],
    "import": ["graph", "import", "{edges}", "{file}", "--population", "new", *MEMORY],
    "export h5": ["graph", "export", "{file}", "{out}.h5", *MEMORY],
    "export csv": ["graph", "export", "{file}", "{out}.csv", "--edges", "p", *MEMORY],
    "export parquet": ["graph", "export", "{file}", "{out}.parquet", "--edges", "q", "--between", "A:0-5", *MEMORY],
    "export vertices": ["graph", "export", "{file}", "{out}.arrow", "--vertices", "A", *MEMORY],
}
# A store with the population that `graph insert` adds to.
GLIA = {
    "insert": ["graph", "insert", "{file}", "--edges", "5", *MEMORY],
    "insert --batch": ["graph", "insert", "{file}", "--edges", "40", "--batch", "7", "--tell", *MEMORY],
    "insert --json": ["graph", "insert", "{file}", "--edges", "30", "--batch", "30", "--json", *MEMORY],
    "neighbors --hops": ["graph", "neighbors", "{file}", "--from", "Astrocyte:0-2", "--hops", "9", *MEMORY],
    "neighbors --measured": ["graph", "neighbors", "{file}", "--from", "Astrocyte", "--to", "Synapse", "--measured", "--digest", *MEMORY],
}
INDEXES = {
    "digest": ["read", "{of}", "--digest", *MEMORY],
    "read --ids": ["read", "{of}", "--ids", "{ids}", "--digest", *MEMORY],
    "info": ["info", "{of}", "--count"],
    "index": ["index", "{of}", *MEMORY],
    "doctor": ["doctor", "{of}", *MEMORY],
    "convert --ids": ["convert", "{of}", "{out}.blow5", "--ids", "{ids}", "--lossy", *MEMORY],
    "filter --ids": ["filter", "{of}", "--ids", "{ids}", "--out", "{out}.blow5", "--lossy", *MEMORY],
    "repack": ["convert", "--repack", "{of}", "{out}.h5", *MEMORY],
    "select": ["read", "{of}", "--select", "0", "--digest", *MEMORY],
    "digest --no-index": ["read", "{of}", "--digest", "--no-index", *MEMORY],
    "doctor --measure": ["doctor", "{of}", "--measure", *MEMORY],
    "scan --columns": ["scan", "{of}", "--columns", "read_id,samples", *MEMORY],
}
# Without a file; `{number}` is any.
ALONE = {
    "synth blow5": ["synth", "{out}.blow5", "--samples", "5000", "--seed", "{number}"],
    "synth pod5": ["synth", "{out}.pod5", "--samples", "{small}", "--signal", "none"],
    "synth fastq": ["synth", "{out}.fastq.gz", "--gzip", "--bases", "{small}"],
    "synth nexus": ["synth", "{out}.nxs", "--size", "200kB", "--banks", "{small}", "--chunk", "{number}", "--filter", "shuffle+gzip"],
    "synth pulses": ["synth", "{out}.nxs", "--size", "{small}", "--banks", "3", "--events-per-pulse", "{number}", "--order", "interleaved"],
    "synth neuroglial": ["synth", "{out}.h5", "--kind", "neuroglial", "--neurons", "{small}", "--astrocytes", "{number}"],
    "synth over a file": ["synth", "{ids}", "--kind", "blow5", "--samples", "1000"],
    "probe a folder": ["probe", "{beside}", "--budget-s", "0.2", "--file-size", "2MB", "--json"],
    "probe for no time": ["probe", "{beside}", "--budget-s", "{number}", "--file-size", "{small}"],
    "read --threads": ["read", "{reads}", "--digest", "--threads", "{number}", *MEMORY],
    "read --gap": ["read", "{arrays}", "--digest", "--gap", "{number}", *MEMORY],
    "read --slice": ["read", "{arrays}", "--digest", "--slice", "{small}/{number}", *MEMORY],
    "read --ranks": ["read", "{arrays}", "--ranks", "{ranks}", *MEMORY],
    "repack --chunk": ["convert", "--repack", "{arrays}", "{out}.h5", "--chunk", "{number}", *MEMORY],
    "neighbors --hops": ["graph", "neighbors", "{store}", "--from", "A:{small}", "--to", "A", "--hops", "{number}", *MEMORY],
}
ID_LISTS = {
    "read --ids": ["read", "{reads}", "--ids", "{file}", "--digest", *MEMORY],
    "scan --ids": ["scan", "{reads}", "--ids", "{file}", *MEMORY],
    "filter --ids": ["filter", "{reads}", "--ids", "{file}", "--missing-ok", "--out", "{out}.blow5", *MEMORY],
    "convert --ids": ["convert", "{reads}", "{out}.pod5", "--ids", "{file}", "--lossy", *MEMORY],
    "degree": ["graph", "degree", "{store}", "--from", "A:{file}", *MEMORY],
    "add": ["graph", "add", "{store}", "--edges", "q:{file}", *MEMORY],
}
VERBS = {
    "slow5": READS,
    "blow5": READS,
    "pod5": READS,
    "fast5": {**READS, "repack": ARRAYS["repack"], "kerchunk": ARRAYS["index --kerchunk"]},
    "hdf5": ARRAYS,
    "nexus": {**EVENTS, **{name: ARRAYS[name] for name in ("digest", "info", "check", "doctor", "index", "repack", "index --kerchunk")}},
    "sonata": {**NETWORKS, **{name: ARRAYS[name] for name in ("digest", "info", "index --kerchunk", "repack")}},
    "neuroglial": {**NETWORKS, "digest": ARRAYS["digest"], "info": ARRAYS["info"]},
    "csv": LISTS,
    "parquet": LISTS,
    "store": STORES,
    "index": INDEXES,
    "ids": ID_LISTS,
    "bam": {"filter --bam": ["filter", "{reads}", "--bam", "{file}", "--missing-ok", "--out", "{out}.blow5", *MEMORY]},
    "results": {
        "compare": ["compare", "{file}"],
        "compare --json": ["compare", "{file}", "--json"],
        "compare --html": ["compare", "{file}", "--html", "{out}.html"],
        "compare --fail-if": ["compare", "{file}", "--baseline", "a", "--fail-if", "ratio > 1.05"],
    },
    "suite": {"bench --list": ["bench", "{file}", "--list"], "bench --dry-run": ["bench", "{file}", "--dry-run", "--out", "{out}"]},
    "tiny": {
        "bench": ["bench", "{file}", "--pairs", "1", "--budget", "5 s", "--out", "{out}"],
        "bench --json": ["bench", "{file}", "--pairs", "1", "--budget", "5 s", "--json", "{out}.jsonl", "--html", "{out}.html", "--markdown"],
    },
    "stopped": {"bench --resume": ["bench", "--resume", "{file}"]},
    "glia": {**STORES, **GLIA},
    "alone": ALONE,
}
# What is no regular file with a plain name, and the formats that it may stand for.
ODD = {
    # A list of ids may come from a pipe, whose writer is waited for.
    "fifo": tuple(VERBS.keys() - {"tiny", "stopped", "glia", "alone", "ids"}),
    # Not in the place of what is written: whatever follows the link must not meet a device.
    "zero": tuple(VERBS.keys() - {"tiny", "stopped", "glia", "alone", "index"}),
    "hole": tuple(VERBS.keys() - {"tiny", "stopped", "glia", "alone"}),
    "empty": tuple(VERBS.keys() - {"glia", "alone"}),
    "folder": tuple(VERBS.keys() - {"glia", "alone"}),
    "bytes": ("slow5", "blow5", "pod5", "fast5", "hdf5", "nexus", "sonata", "csv", "parquet", "ids", "bam", "results", "suite", "store"),
    "long": ("slow5", "blow5", "pod5", "fast5", "hdf5", "nexus", "sonata", "csv", "parquet", "ids", "bam", "results", "suite", "store"),
}
# How often each kind comes.
SHARES = {"slow5": 6, "blow5": 14, "pod5": 14, "fast5": 10, "hdf5": 16, "nexus": 8, "sonata": 6, "neuroglial": 2, "store": 12, "index": 6, "ids": 2, "csv": 2, "parquet": 2, "bam": 1, "results": 3, "suite": 1, "tiny": 2, "stopped": 2, "glia": 5, "alone": 4, "odd": 8}
# Verbs of which the peer says what is right come more often.
OFTEN = {"digest": 10, "import": 4}
# These may change the store that they are given; all others leave their inputs as they are.
CHANGE_STORE = {"add", "remove", "remove all", "compact", "import", "import into a store", "insert", "insert --batch", "insert --json"}
ENDINGS = {"slow5": ".slow5", "blow5": ".blow5", "pod5": ".pod5", "fast5": ".fast5", "hdf5": ".h5", "nexus": ".nxs", "sonata": ".h5", "neuroglial": ".h5", "csv": ".csv", "parquet": ".parquet", "ids": ".txt", "bam": ".bam", "results": ".jsonl", "suite": ".toml", "store": "", "tiny": ".toml", "stopped": ".jsonl", "glia": "", "alone": ".none"}
