use proptest::prelude::*;

use super::*;

/// A field of every type, enumerations with two labels.
fn every_field() -> Vec<AuxField> {
    let kinds = Scalar::ALL.into_iter().flat_map(|s| [AuxType::Scalar(s), AuxType::Array(s)]);
    let labels = |kind: AuxType| match kind.element() {
        Scalar::Enum => vec![String::from("unknown"), String::from("signal_positive")],
        _ => Vec::new(),
    };
    kinds
        .enumerate()
        .map(|(i, kind)| AuxField { name: format!("f{i}"), kind, labels: labels(kind) })
        .collect()
}

#[test]
fn type_names_round_trip() {
    for field in every_field() {
        assert_eq!(
            AuxField::parse_type(&field.type_name(), 0),
            Ok((field.kind, field.labels.clone()))
        );
        assert_eq!(field.check(), Ok(()));
    }
    for bad in [
        "",
        "int",
        "int8",
        "int8_t**",
        "*",
        "enum",
        "enum*",
        "enum{}",
        "enum{a,a}",
        "enum{a,}",
        "enum{1a}",
    ] {
        assert!(AuxField::parse_type(bad, 0).is_err(), "{bad}");
    }
    assert!(AuxField::parse_type("float{a}", 0).is_err());
    let many: Vec<String> = (0..256).map(|i| format!("l{i}")).collect();
    assert!(AuxField::parse_type(&format!("enum{{{}}}", many.join(",")), 0).is_err());
}

#[test]
fn missing_values() {
    let fields = every_field();
    let mut bytes = Vec::new();
    for field in &fields {
        assert_eq!(field.push(AuxValue::Missing, &mut bytes), Ok(()));
    }
    assert_eq!(verify(&fields, &bytes), Ok(()));
    assert!(
        AuxValues::new(&fields, &bytes).all(|value| matches!(value, Ok((_, AuxValue::Missing))))
    );
}

#[test]
fn values_come_back() {
    let values = [
        (AuxType::Scalar(Scalar::Int8), AuxValue::Int8(-1)),
        (AuxType::Scalar(Scalar::Int16), AuxValue::Int16(-300)),
        (AuxType::Scalar(Scalar::Int32), AuxValue::Int32(568)),
        (AuxType::Scalar(Scalar::Int64), AuxValue::Int64(i64::MIN)),
        (AuxType::Scalar(Scalar::Uint8), AuxValue::Uint8(3)),
        (AuxType::Scalar(Scalar::Uint16), AuxValue::Uint16(65_534)),
        (AuxType::Scalar(Scalar::Uint32), AuxValue::Uint32(7)),
        (AuxType::Scalar(Scalar::Uint64), AuxValue::Uint64(12_011_772)),
        (AuxType::Scalar(Scalar::Float), AuxValue::Float(198.5)),
        (AuxType::Scalar(Scalar::Double), AuxValue::Double(-0.25)),
        (AuxType::Scalar(Scalar::Char), AuxValue::Char(b'x')),
        (AuxType::STRING, AuxValue::String(b"189")),
        (
            AuxType::Array(Scalar::Int16),
            AuxValue::Array(AuxArray { element: Scalar::Int16, bytes: &[1, 0, 2, 0] }),
        ),
    ];
    let fields: Vec<AuxField> = values.iter().map(|(kind, _)| AuxField::new("f", *kind)).collect();
    // One byte at the start makes the values unaligned: nothing may rely on alignment.
    let mut bytes = vec![0u8];
    for (field, (_, value)) in fields.iter().zip(values) {
        assert_eq!(field.push(value, &mut bytes), Ok(()));
    }
    let body = bytes.get(1..).unwrap_or_default();
    let back: Vec<AuxValue<'_>> =
        AuxValues::new(&fields, body).filter_map(|v| v.ok()).map(|(_, v)| v).collect();
    assert_eq!(back, values.map(|(_, value)| value));
    let Some(AuxValue::Array(array)) = back.last() else {
        unreachable!("the last value is an array")
    };
    assert_eq!(array.iter().collect::<Vec<_>>(), [AuxValue::Int16(1), AuxValue::Int16(2)]);
    assert!(AuxField::new("f", AuxType::STRING).push(AuxValue::Int8(1), &mut bytes).is_err());
    assert!(
        AuxField::new("f", AuxType::Scalar(Scalar::Int8))
            .push(AuxValue::Uint8(1), &mut bytes)
            .is_err()
    );
}

#[test]
fn sizes_up_to_the_largest_are_checked() {
    let fields = [AuxField::new("a", AuxType::Array(Scalar::Double))];
    for count in [1, 2, u64::from(u32::MAX), 1 << 61, (1 << 61) + 1, u64::MAX] {
        let mut bytes = count.to_le_bytes().to_vec();
        bytes.extend([0; 7]);
        assert!(verify(&fields, &bytes).is_err(), "{count}");
        let items: Vec<_> = AuxValues::new(&fields, &bytes).collect();
        assert!(items.len() == 1 && items.iter().all(Result::is_err));
    }
}

proptest! {
    #[test]
    fn any_bytes_are_walked_or_refused(bytes: Vec<u8>, skip in 0usize..24) {
        let fields = every_field();
        let fields = fields.get(skip..).unwrap_or_default();
        let walked = AuxValues::new(fields, &bytes).all(|v| v.is_ok());
        prop_assert!(walked || verify(fields, &bytes).is_err());
    }
}
