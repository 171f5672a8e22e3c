//! A pipeline step by step: bars of every arm, the speed-up beside them, and the whole.

use serde_json::{Value, json};

use super::{Figure, bars, grouped, lane, plain, rows_axis, seconds_axis};
use crate::results::ResultEntry;
use crate::units::{digits, seconds};

/// One figure a suite that has steps.
pub(in crate::report) fn steps(entries: &[ResultEntry]) -> Vec<Figure> {
    let timed = entries.iter().filter(|e| e.step.is_some() && e.time_s.is_some());
    let groups = grouped(timed, |e| {
        let suite = e.suite.clone().unwrap_or_default();
        // Steps of different sizes or threads are pipelines of their own.
        let settings: Vec<String> = e.settings.iter().map(|(k, v)| format!("{k} {v}")).collect();
        if settings.is_empty() || !e.published {
            suite
        } else {
            format!("{suite}, {}", settings.join(", "))
        }
    });
    groups.iter().filter_map(|(suite, entries)| draw(suite, entries)).collect()
}

fn draw(suite: &str, entries: &[&ResultEntry]) -> Option<Figure> {
    let mut names: Vec<&str> = Vec::new();
    let mut arms: Vec<&str> = Vec::new();
    for e in entries {
        let step = e.step.as_deref().unwrap_or_default();
        if !names.contains(&step) {
            names.push(step);
        }
        if !arms.contains(&e.arm.as_str()) {
            arms.push(&e.arm);
        }
    }
    let of = |step: &str, arm: &str| {
        entries.iter().find(|e| e.step.as_deref() == Some(step) && e.arm == arm)
    };
    let time = |step: &str, arm: &str| of(step, arm).and_then(|e| Some(e.time_s?.median));
    let baseline = *arms.first()?;
    let total = |arm: &str| names.iter().map(|s| time(s, arm)).sum::<Option<f64>>();
    let mut rows: Vec<String> = names.iter().map(|s| (*s).to_owned()).collect();
    let whole = arms.iter().all(|a| total(a).is_some()) && names.len() > 1;
    if whole {
        rows.push("all steps".into());
    }
    let value = |i: usize, arm: &str| match names.get(i) {
        Some(step) => time(step, arm),
        None => total(arm),
    };
    let mut data: Vec<Value> = Vec::new();
    let mut labels: Vec<Value> = Vec::new();
    for (a, arm) in arms.iter().enumerate() {
        let hover = |i: usize, t: f64| {
            let step = names.get(i).copied().unwrap_or("all steps");
            let entry = names.get(i).and_then(|s| of(s, arm));
            let rate = entry
                .and_then(|e| e.rate())
                .map_or(String::new(), |r| format!("<br>{}", crate::units::bandwidth(r)));
            let paired =
                entry.and_then(|e| e.ratio).map_or(String::new(), |r| format!("<br>{r}, paired"));
            format!("<b>{}, {}</b><br>{}{rate}{paired}", plain(arm), plain(step), seconds(t))
        };
        let with: Vec<(usize, f64, String)> =
            (0..rows.len()).filter_map(|i| value(i, arm).map(|t| (i, t, hover(i, t)))).collect();
        let (offset, _) = lane(a, arms.len());
        for (i, t, _) in &with {
            let speed = value(*i, baseline)
                .filter(|_| a > 0)
                .map(|b| format!("  {}x as fast", digits(b / t)));
            labels.push(json!({
                "x": t, "y": *i as f64 + offset, "xanchor": "left", "xshift": 4, "showarrow": false,
                "text": format!("{}{}", seconds(*t), speed.unwrap_or_default()), "font": { "size": 11 },
            }));
        }
        data.push(bars(arm, a, arms.len(), &with));
    }
    let said: Vec<String> = rows
        .iter()
        .enumerate()
        .map(|(i, row)| {
            let each: Vec<String> = arms
                .iter()
                .filter_map(|a| Some(format!("{a} {}", seconds(value(i, a)?))))
                .collect();
            format!("{row}: {}", each.join(", "))
        })
        .collect();
    let largest = (0..rows.len())
        .flat_map(|i| arms.iter().filter_map(move |a| value(i, a)))
        .fold(0.0, f64::max);
    let mut axis = seconds_axis("");
    if let Some(axis) = axis.as_object_mut() {
        // Room for the figures behind the longest bar.
        axis.insert("range".into(), json!([0, largest * 1.3]));
    }
    Some(Figure {
        title: format!("{suite}: step by step"),
        alt: format!("Bars of the time of each step by arm. {}.", said.join("; ")),
        note: format!("Medians; as fast as {baseline} is 1x. \"All steps\" is their sum."),
        height: 80 + rows.len() * (16 + 24 * arms.len()),
        data,
        layout: json!({ "xaxis": axis, "yaxis": rows_axis(&rows), "barmode": "overlay", "annotations": labels }),
    })
}
