use proptest::prelude::*;

use super::*;
use crate::record::{Encoding, RecordPress, SignalPress, Version};

fn header(runs: &[RunInfo]) -> Header {
    Header {
        version: Version::V1_0_0,
        encoding: Encoding::Binary,
        record_press: RecordPress::None,
        signal_press: SignalPress::None,
        read_groups: runs.len() as u32,
        attributes: attributes(runs),
        aux: Vec::new(),
        data_offset: 0,
    }
}

fn run(
    texts: &[String; 3],
    start: i64,
    context: Vec<(String, String)>,
    tracking: Vec<(String, String)>,
) -> RunInfo {
    let value = |name: &str, stored| match stored {
        RunStored::Text if name == "acquisition_id" => RunValue::Text(texts[0].clone()),
        RunStored::Text if name == "sample_id" => RunValue::Text(texts[1].clone()),
        RunStored::Text => RunValue::Text(texts[2].clone()),
        RunStored::Millis => RunValue::Millis(start),
        RunStored::I16 => RunValue::Integer(-2048),
        RunStored::U16 => RunValue::Integer(5000),
        RunStored::Tags if name == "context_tags" => RunValue::Tags(context.clone()),
        RunStored::Tags => RunValue::Tags(tracking.clone()),
    };
    RunInfo {
        columns: RUN_INFO
            .iter()
            .map(|&(name, stored)| (name.to_owned(), value(name, stored)))
            .collect(),
    }
}

/// The run is like one of an instrument: tags repeat columns with other values.
#[test]
fn attributes_are_named_as_blue_crab_names_them() {
    let pair = |key: &str, value: &str| (key.to_owned(), value.to_owned());
    let context = vec![pair("sample_frequency", "4000"), pair("sequencing_kit", "sqk-rbk114-96")];
    let tracking = vec![
        pair("protocol_start_time", "2023-03-27T05:50:47.725380+01:00"),
        pair("run_id", "90d2"),
    ];
    let texts = ["90d2".to_owned(), "no_sample".to_owned(), "text".to_owned()];
    let header = header(&[run(&texts, 1_679_892_899_593, context, tracking)]);
    let value = |name: &str| header.attribute(name, 0);
    assert_eq!(value("acquisition_start_time"), Some("2023-03-27 04:54:59.593000+00:00"));
    assert_eq!(value("protocol_start_time"), Some("2023-03-27T05:50:47.725380+01:00"));
    assert_eq!(value("run_id"), Some("90d2"));
    assert_eq!(value("adc_min"), Some("-2048"));
    assert_eq!(value("sample_frequency"), Some("4000"));
    assert_eq!(value("sequencing_kit"), Some("text"), "the column comes after the context tags");
    assert_eq!(value("pod5_run_info"), Some(r#"{"protocol_start_time":1679892899593}"#));
    assert_eq!(value("pod5_tracking_id"), Some(r#"["protocol_start_time","run_id"]"#));
    assert_eq!(
        value("pod5_context_tags"),
        Some(r#"["sample_frequency",["sequencing_kit","sqk-rbk114-96"]]"#)
    );
    assert!(header.attributes.is_sorted_by(|a, b| a.name < b.name));
}

/// The header has no `pod5_` attributes.
#[test]
fn attributes_of_other_origin_become_columns_and_tags() {
    let attribute =
        |name: &str, value: &str| Attribute { name: name.into(), values: vec![Some(value.into())] };
    let attributes = vec![
        attribute("asic_id", "17"),
        attribute("exp_start_time", "2019-05-13T11:11:43Z"),
        attribute("protocol_start_time", "2019-05-13T13:11:43+02:00"),
        attribute("run_id", "a08e"),
    ];
    let run = RunInfo::of_group(&Header { attributes, read_groups: 1, ..header(&[]) }, 0);
    assert_eq!(run.text("acquisition_id"), "a08e");
    assert_eq!(run.get("protocol_start_time"), Some(&RunValue::Millis(1_557_745_903_000)));
    let tag = |name: &str, value: &str| (name.to_owned(), value.to_owned());
    let tags = [
        tag("asic_id", "17"),
        tag("exp_start_time", "2019-05-13T11:11:43Z"),
        tag("run_id", "a08e"),
        // The column holds the time; the tag keeps the original notation.
        tag("protocol_start_time", "2019-05-13T13:11:43+02:00"),
    ];
    assert_eq!(run.get("tracking_id"), Some(&RunValue::Tags(tags.into())));
    assert_eq!(run.columns.len(), RUN_INFO.len());
}

#[test]
fn times_are_read_as_they_are_written() {
    assert_eq!(time_text(0), "1970-01-01 00:00:00+00:00");
    assert_eq!(time_text(951_782_400_000), "2000-02-29 00:00:00+00:00");
    assert_eq!(time_text(-1), "1969-12-31 23:59:59.999000+00:00");
    for text in [
        "",
        "2023",
        "2023-13-01 00:00:00",
        "2023-01-01",
        "2023-01-01 aa:00:00",
        "9999999999-01-01 00:00:00",
    ] {
        assert_eq!(parse_time(text), None, "{text}");
    }
}

fn tags() -> impl Strategy<Value = Vec<(String, String)>> {
    let key = prop::sample::select(vec![
        "sample_id",
        "run_id",
        "protocol_start_time",
        "pod5_run_info",
        "a",
        "",
        "t\tb",
    ]);
    prop::collection::vec((key.prop_map(str::to_owned), "[a\\.\t\n\"\\\\é]{0,3}"), 0..6)
}

proptest! {
    #[test]
    fn run_fields_survive_as_attributes(
        texts in [".{0,3}", "[a\\.\t\n]{0,2}", ".{0,3}"],
        start in -60_000_000_000_000..200_000_000_000_000_i64,
        context in tags(),
        tracking in tags(),
    ) {
        let swapped = run(&texts, 0, tracking.clone(), context.clone());
        let runs = [run(&texts, start, context, tracking), swapped];
        let header = header(&runs);
        for (group, run) in runs.iter().enumerate() {
            prop_assert_eq!(&RunInfo::of_group(&header, group as u32), run);
        }
    }

    #[test]
    fn a_time_survives_as_text(millis in -60_000_000_000_000..200_000_000_000_000_i64) {
        prop_assert_eq!(parse_time(&time_text(millis)), Some(millis));
    }
}
