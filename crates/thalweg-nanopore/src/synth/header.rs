//! Header attributes: the names that a PromethION run of 2024 writes, with values that mark the run
//! as synthetic.

use thalweg_codec::splitmix::mix;

use super::Recipe;

/// The protocol of the run.
const SCRIPT: &str = "sequencing/sequencing_PRO114_DNA_e8_2_400K:FLO-PRO114M:SQK-LSK114:400";

/// Attributes that no recipe changes.
const FIXED: [(&str, &str); 34] = [
    ("asic_id_eeprom", "0"),
    ("asic_temp", "27.578566"),
    ("asic_version", "Unknown"),
    ("barcoding_enabled", "0"),
    ("basecall_config_filename", "dna_r10.4.1_e8.2_400bps_5khz_hac_prom.cfg"),
    ("configuration_version", "5.8.6"),
    ("data_source", "simulated"),
    ("device_type", "promethion"),
    ("distribution_status", "stable"),
    ("distribution_version", "23.11.7"),
    ("exp_script_name", SCRIPT),
    ("exp_script_purpose", "sequencing_run"),
    ("experiment_type", "genomic_dna"),
    ("flow_cell_product_code", "FLO-PRO114M"),
    ("guppy_version", "7.2.13+fba8e8925"),
    ("heatsink_temp", "33.988201"),
    ("host_product_code", "PRO-PRC024"),
    ("hostname", "synthetic"),
    ("installation_type", "nc"),
    ("is_simulated", "1"),
    ("local_basecalling", "0"),
    ("operating_system", "ubuntu 20.04"),
    ("package", "bream4"),
    ("package_version", "7.8.2"),
    ("protocol_name", SCRIPT),
    ("protocols_version", "7.8.2"),
    ("sequencer_position", "1A"),
    ("sequencer_position_type", "PromethION"),
    ("sequencing_kit", "sqk-lsk114"),
    ("software", "thalweg synth"),
    ("system_name", "synthetic"),
    ("system_type", "PromethION 24/48"),
    ("usb_config", "fx3_0.0.0#fpga_0.0.0#unknown#unknown"),
    ("version", "5.8.6"),
];

/// Attributes of one read group, sorted by name. Their values follow from the recipe, so that equal
/// recipes give equal files; the ids differ between read groups.
pub fn attributes(recipe: &Recipe, read_group: u32) -> Vec<(&'static str, String)> {
    let hex = |purpose: u64, digits: usize| {
        let word = |k: u64| {
            mix(mix(recipe.seed ^ (purpose << 32 | u64::from(read_group))).wrapping_add(k))
        };
        let mut text = String::new();
        for k in 0..digits.div_ceil(16) {
            text += &format!("{:016x}", word(k as u64));
        }
        text.truncate(digits);
        text
    };
    let uuid = |purpose| {
        let h = hex(purpose, 32);
        format!("{}-{}-4{}-a{}-{}", &h[..8], &h[8..12], &h[13..16], &h[17..20], &h[20..])
    };
    let run = hex(1, 40);
    // A day for each read group, so that their times differ.
    let day = 1 + read_group % 28;
    let rate = format!("{}", recipe.sample_rate);
    let sample = format!("synthetic_seed_{}_group_{read_group}", recipe.seed);
    let (adc_min, adc_max) = super::signal::bounds(recipe.digitisation);

    let mut all: Vec<_> = FIXED.into_iter().map(|(name, value)| (name, value.to_owned())).collect();
    all.extend([
        ("acquisition_id", run.clone()),
        ("acquisition_start_time", format!("2024-02-{day:02} 11:11:37.722000+00:00")),
        ("adc_max", format!("{adc_max}")),
        ("adc_min", format!("{adc_min}")),
        ("asic_id", hex(2, 16)),
        ("device_id", format!("SYN{}", hex(3, 5))),
        ("exp_start_time", format!("2024-02-{day:02}T11:11:37.722531+00:00")),
        ("experiment_name", sample.clone()),
        ("flow_cell_id", format!("SYN{}", hex(4, 5))),
        ("host_product_serial_number", format!("SYN{}", hex(5, 5))),
        ("protocol_group_id", sample.clone()),
        ("protocol_run_id", uuid(6)),
        ("protocol_start_time", format!("2024-02-{day:02}T11:09:55.746097+00:00")),
        ("run_id", run),
        ("sample_frequency", rate.clone()),
        ("sample_id", sample),
        ("sample_rate", rate),
        ("selected_speed_bases_per_second", format!("{}", recipe.bases_per_second)),
    ]);
    all.sort_unstable_by_key(|(name, _)| *name);
    all
}
