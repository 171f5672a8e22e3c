//! The yardstick: verified-cold trials, paired with peers, against this machine's own limit.
