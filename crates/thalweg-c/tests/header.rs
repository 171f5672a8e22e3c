//! `include/thalweg.h` declares what the library exports: the same functions, structures and codes.
#![allow(clippy::panic, clippy::unwrap_used, reason = "tests")]

use std::collections::BTreeMap;

use syn::{Expr, Fields, FnArg, Item, Lit, Pat, ReturnType, Type};

const HEADER: &str = include_str!("../include/thalweg.h");
const EXPORTS: &str = include_str!("../src/exports.rs");
const TYPES: &str = include_str!("../src/types.rs");
const STATUS: &str = include_str!("../src/status.rs");

/// A declaration with one space between its words and signs.
fn spaced(text: &str) -> String {
    let signs = text.chars().flat_map(|sign| match sign {
        '*' | '(' | ')' | ',' | '[' | ']' => vec![' ', sign, ' '],
        sign => vec![sign],
    });
    signs.collect::<String>().split_whitespace().collect::<Vec<_>>().join(" ")
}

/// The header without comments and lines of the preprocessor.
fn plain() -> String {
    let mut rest = HEADER;
    let mut text = String::new();
    while let Some((before, after)) = rest.split_once("/*") {
        text.push_str(before);
        rest = after.split_once("*/").unwrap().1;
    }
    text.push_str(rest);
    text.lines().filter(|line| !line.starts_with('#')).collect::<Vec<_>>().join("\n")
}

/// The type of C for one of Rust.
fn c_type(of: &Type) -> String {
    match of {
        Type::Ptr(pointer) => {
            let inner = c_type(&pointer.elem);
            let is_const = pointer.const_token.is_some();
            match (&*pointer.elem, is_const) {
                (Type::Ptr(_), true) => format!("{inner} const *"),
                (_, true) => format!("const {inner} *"),
                (_, false) => format!("{inner} *"),
            }
        }
        Type::Path(path) => match path.path.segments.last().unwrap().ident.to_string().as_str() {
            "c_char" => "char".into(),
            "c_void" => "void".into(),
            "usize" => "size_t".into(),
            "f64" => "double".into(),
            "i16" => "int16_t".into(),
            "i32" => "int32_t".into(),
            "i64" => "int64_t".into(),
            "u32" => "uint32_t".into(),
            "u64" => "uint64_t".into(),
            ours if ours.starts_with("thw_") => ours.into(),
            other => panic!("{other} has no type in C"),
        },
        other => panic!("no type of C: {other:?}"),
    }
}

fn name_of(ident: &syn::Ident) -> String {
    ident.to_string().trim_start_matches("r#").to_owned()
}

/// The functions of the sources, as C declares them.
fn exported() -> BTreeMap<String, String> {
    let mut found = BTreeMap::new();
    for item in syn::parse_file(EXPORTS).unwrap().items {
        let Item::Fn(function) = item else { continue };
        if function.sig.abi.is_none() {
            continue;
        }
        let parameter = |argument: &FnArg| {
            let FnArg::Typed(typed) = argument else { panic!("self") };
            let Pat::Ident(name) = &*typed.pat else { panic!("no name") };
            format!("{} {}", c_type(&typed.ty), name_of(&name.ident))
        };
        let parameters: Vec<String> = function.sig.inputs.iter().map(parameter).collect();
        let parameters = if parameters.is_empty() { "void".into() } else { parameters.join(", ") };
        let result = match &function.sig.output {
            ReturnType::Default => "void".into(),
            ReturnType::Type(_, of) => c_type(of),
        };
        let name = name_of(&function.sig.ident);
        found.insert(name.clone(), spaced(&format!("{result} {name}({parameters})")));
    }
    found
}

#[test]
fn functions_are_declared() {
    let mut declared = BTreeMap::new();
    let text = plain();
    let functions = &text[text.find("const char *thw_version").unwrap()..];
    for declaration in functions.split(';').map(spaced).filter(|text| text.contains("thw_")) {
        let name = declaration.split(" (").next().unwrap().rsplit(' ').next().unwrap().to_owned();
        declared.insert(name, declaration);
    }
    assert!(declared.len() > 20, "{declared:?}");
    assert_eq!(declared, exported());
}

#[test]
fn structures_are_declared() {
    let mut declared = BTreeMap::new();
    for part in plain().split("typedef struct {").skip(1) {
        let (fields, after) = part.split_once('}').unwrap();
        let name = after.split_once(';').unwrap().0.trim().to_owned();
        let fields: Vec<String> = fields.split(';').map(spaced).filter(|f| !f.is_empty()).collect();
        declared.insert(name, fields);
    }
    let mut ours = BTreeMap::new();
    let mut lengths = BTreeMap::new();
    for item in syn::parse_file(TYPES).unwrap().items {
        match item {
            Item::Const(one) => {
                let Expr::Lit(value) = *one.expr else { panic!("no number") };
                let Lit::Int(value) = value.lit else { panic!("no number") };
                lengths.insert(one.ident.to_string(), value.to_string());
            }
            Item::Struct(one) => {
                let Fields::Named(fields) = &one.fields else { panic!("no names") };
                let field = |field: &syn::Field| {
                    let name = name_of(field.ident.as_ref().unwrap());
                    let Type::Array(array) = &field.ty else {
                        return spaced(&format!("{} {name}", c_type(&field.ty)));
                    };
                    let Expr::Path(length) = &array.len else { panic!("no constant") };
                    let length = &lengths[&length.path.segments[0].ident.to_string()];
                    spaced(&format!("{} {name}[{length}]", c_type(&array.elem)))
                };
                ours.insert(one.ident.to_string(), fields.named.iter().map(field).collect());
            }
            _ => {}
        }
    }
    assert!(ours.len() >= 5);
    assert_eq!(declared, ours);
}

#[test]
fn codes_are_declared() {
    let text = plain();
    let codes = text.split_once("enum THW_CODE {").unwrap().1.split_once('}').unwrap().0;
    let declared: BTreeMap<String, i32> = codes
        .split(',')
        .map(|code| code.split_once('=').unwrap())
        .map(|(name, value)| (name.trim().to_owned(), value.trim().parse().unwrap()))
        .collect();
    let constants = STATUS.lines().filter_map(|line| {
        let line = line.strip_prefix("pub(crate) ").unwrap_or(line).strip_prefix("const ")?;
        let (name, value) = line.split_once(": i32 = ")?;
        Some((format!("THW_{name}"), value.trim_end_matches(';').parse().unwrap()))
    });
    assert_eq!(declared, constants.collect());
    let version = env!("CARGO_PKG_VERSION");
    let number = |part: &str| {
        let line = HEADER.lines().find(|line| line.contains(&format!("THW_VERSION_{part} ")));
        line.unwrap().rsplit(' ').next().unwrap().to_owned()
    };
    assert!(version.starts_with(&format!("{}.{}.", number("MAJOR"), number("MINOR"))), "{version}");
}
