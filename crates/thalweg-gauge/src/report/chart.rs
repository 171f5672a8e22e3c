//! Charts as inline SVG: a bar an arm with every raw trial on it, and its stages.

use super::facts;
use super::html::escape;
use crate::comparison::Comparison;
use crate::units::seconds;

/// Width of the drawing, and of its left margin, which holds the names.
const WIDTH: f64 = 960.0;
const LEFT: f64 = 220.0;
const RIGHT: f64 = 90.0;
const ROW: f64 = 44.0;
const BAR: f64 = 22.0;
const TOP: f64 = 14.0;
const BOTTOM: f64 = 30.0;
/// Names longer than this would run into the bars.
const NAME: usize = 28;

/// A scale from 0 to a little beyond the largest value.
struct Scale {
    largest: f64,
}

impl Scale {
    fn x(&self, value: f64) -> f64 {
        LEFT + value / self.largest * (WIDTH - LEFT - RIGHT)
    }

    /// Round steps: 1, 2 or 5 times a power of ten, four to ten of them.
    fn ticks(&self) -> Vec<f64> {
        let rough = self.largest / 5.0;
        let power = 10_f64.powf(rough.log10().floor());
        let step = [1.0, 2.0, 5.0, 10.0].into_iter().map(|m| m * power).find(|&s| s >= rough).unwrap_or(rough);
        let count = (self.largest / step).floor().min(20.0) as u32;
        (0..=count).map(|i| f64::from(i) * step).collect()
    }

    fn axis(&self, bottom: f64) -> String {
        self.ticks()
            .into_iter()
            .map(|t| {
                let x = self.x(t);
                format!(
                    "<line class=\"axis\" x1=\"{x:.1}\" y1=\"{TOP}\" x2=\"{x:.1}\" y2=\"{bottom:.1}\"/>\
                     <text class=\"soft\" x=\"{x:.1}\" y=\"{:.1}\" text-anchor=\"middle\">{}</text>\n",
                    bottom + 18.0,
                    seconds(t)
                )
            })
            .collect()
    }
}

fn svg(label: &str, rows: usize, body: &str) -> String {
    let height = TOP + ROW * rows as f64 + BOTTOM;
    format!("<svg viewBox=\"0 0 {WIDTH} {height}\" role=\"img\" aria-label=\"{}\">\n{body}</svg>\n", escape(label))
}

fn name(text: &str, y: f64) -> String {
    let short: String = if text.chars().count() > NAME {
        text.chars().take(NAME - 1).chain(['…']).collect()
    } else {
        text.to_owned()
    };
    let x = LEFT - 10.0;
    format!(
        "<text x=\"{x}\" y=\"{:.1}\" text-anchor=\"end\">{}<title>{}</title></text>\n",
        y + BAR / 2.0 + 4.0,
        escape(&short),
        escape(text)
    )
}

/// A bar an arm (its median), a dot a trial, a cross a rejected one, and the machine's limit.
pub(super) fn times(c: &Comparison) -> String {
    let all = c.trials.iter().filter(|t| t.round.is_some()).filter_map(|t| t.time_s);
    let largest = all.fold(0.0, f64::max);
    if largest <= 0.0 {
        return String::new();
    }
    let scale = Scale { largest: largest * 1.02 };
    let rows = c.summaries.len();
    let mut body = scale.axis(TOP + ROW * rows as f64);
    for (i, s) in c.summaries.iter().enumerate() {
        let y = TOP + ROW * i as f64 + (ROW - BAR) / 2.0;
        body.push_str(&name(&s.arm, y));
        if let Some(time) = s.time_s {
            let (x, class) = (scale.x(time.median), if i == 0 { "base" } else { "bar" });
            body.push_str(&format!(
                "<rect class=\"{class}\" x=\"{LEFT}\" y=\"{y:.1}\" width=\"{:.1}\" height=\"{BAR}\"/>\n",
                x - LEFT
            ));
            let end = scale.x(time.max) + 8.0;
            let middle = y + BAR / 2.0 + 4.0;
            body.push_str(&format!("<text x=\"{end:.1}\" y=\"{middle:.1}\">{}</text>\n", seconds(time.median)));
        }
        for t in c.trials.iter().filter(|t| t.arm == s.arm) {
            let (Some(time), Some(round)) = (t.time_s, t.round) else { continue };
            // Rounds from top to bottom, so that a drift shows as a slope.
            let spot = y + 3.0 + (BAR - 6.0) * (round as f64 + 0.5) / c.session.rounds.max(1) as f64;
            let x = scale.x(time);
            let title = format!("round {}: {}", round + 1, seconds(time));
            body.push_str(&match &t.rejected {
                None => {
                    format!("<circle class=\"dot\" cx=\"{x:.1}\" cy=\"{spot:.1}\" r=\"2.5\"><title>{title}</title></circle>\n")
                }
                Some(why) => format!(
                    "<path class=\"bad\" d=\"M{:.1} {:.1}l6 6m0 -6l-6 6\"><title>{title}, rejected: {}</title></path>\n",
                    x - 3.0,
                    spot - 3.0,
                    escape(why)
                ),
            });
        }
        if let Some(floor) = s.limit.and_then(|l| l.floor_s()).filter(|&f| f <= scale.largest) {
            let x = scale.x(floor);
            body.push_str(&format!(
                "<line class=\"limit\" x1=\"{x:.1}\" y1=\"{:.1}\" x2=\"{x:.1}\" y2=\"{:.1}\"><title>this machine's limit: \
                 {}</title></line>\n",
                y - 8.0,
                y + BAR + 8.0,
                seconds(floor)
            ));
        }
    }
    let label = format!("{} by arm", facts::clock(c));
    let legend = "Bar: median. Dot: one trial, first round on top. Cross: a rejected trial, not averaged. Dashed line: this \
                  machine's limit (device and memory).";
    format!("<h2>{}</h2>\n{}<p><small>{legend}</small></p>\n", escape(&label), svg(&label, rows, &body))
}

/// Busy time by stage, stacked; it may exceed the time on the clock, because stages overlap and workers are many.
pub(super) fn stages(c: &Comparison) -> String {
    let with: Vec<_> = c.summaries.iter().filter(|s| s.stages.iter().any(|g| g.busy_s.is_some())).collect();
    let sum = |s: &crate::comparison::Summary| s.stages.iter().filter_map(|g| g.busy_s).sum::<f64>();
    let largest = with.iter().map(|s| sum(s)).fold(0.0, f64::max);
    if largest <= 0.0 {
        return String::new();
    }
    let mut names: Vec<&str> = Vec::new();
    for stage in with.iter().flat_map(|s| &s.stages) {
        if !names.contains(&stage.name.as_str()) {
            names.push(&stage.name);
        }
    }
    // Five colours can be told apart; whatever comes after them shares the last.
    let class = |name: &str| format!("s{}", names.iter().position(|n| *n == name).unwrap_or(4).min(4));
    let scale = Scale { largest: largest * 1.02 };
    let mut body = scale.axis(TOP + ROW * with.len() as f64);
    for (i, s) in with.iter().enumerate() {
        let y = TOP + ROW * i as f64 + (ROW - BAR) / 2.0;
        body.push_str(&name(&s.arm, y));
        let mut from = 0.0;
        for stage in &s.stages {
            let Some(busy) = stage.busy_s.filter(|&b| b > 0.0) else { continue };
            let (x, end) = (scale.x(from), scale.x(from + busy));
            let exposed = stage.exposed_s.map_or(String::new(), |e| format!(", the consumer waited {}", seconds(e)));
            body.push_str(&format!(
                "<rect class=\"{}\" x=\"{x:.1}\" y=\"{y:.1}\" width=\"{:.1}\" height=\"{BAR}\"><title>{}: {} \
                 busy{exposed}</title></rect>\n",
                class(&stage.name),
                end - x,
                escape(&stage.name),
                seconds(busy)
            ));
            from += busy;
        }
    }
    let legend: Vec<String> = names
        .iter()
        .map(|n| {
            let square =
                format!("<svg class=\"{}\" viewBox=\"0 0 1 1\" style=\"display:inline;width:0.8em\">", class(n));
            format!("{square}<rect width=\"1\" height=\"1\"/></svg> {}", escape(n))
        })
        .collect();
    let label = "busy time by stage, summed over workers";
    format!("<h2>{label}</h2>\n{}<p><small>{}</small></p>\n", svg(label, with.len(), &body), legend.join(" &nbsp; "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ticks_are_round_and_few() {
        for largest in [0.003, 0.9, 1.0, 7.3, 1234.0] {
            let ticks = Scale { largest }.ticks();
            assert!((3..=11).contains(&ticks.len()), "{largest}: {ticks:?}");
            assert!(ticks.iter().all(|&t| t <= largest * 1.0001));
        }
    }
}
