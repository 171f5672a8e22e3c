//! Panels as PNG and SVG. The program brings its own font, because servers may have no fonts.

use std::fmt::Display;

use plotters::coord::Shift;
use plotters::coord::ranged1d::{AsRangedCoord, ValueFormatter};
use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, Pos, VPos};
use plotters::style::{FontStyle, register_font};

use super::{Marks, Panel, rounded, short};
use crate::common::Failure;

const FONT: &[u8] = include_bytes!("../../assets/DejaVuSans.ttf");
const FAMILY: &str = "sans-serif";

// Colours: text, labels, lines of the grid, data, the ends of the colour scale, empty cells.
const INK: RGBColor = RGBColor(0x1b, 0x1f, 0x24);
const SOFT: RGBColor = RGBColor(0x57, 0x60, 0x6a);
const RULE: RGBColor = RGBColor(0xd8, 0xde, 0xe4);
const BLUE: RGBColor = RGBColor(0x00, 0x72, 0xb2);
const PALE: RGBColor = RGBColor(0xcf, 0xe3, 0xf2);
const DARK: RGBColor = RGBColor(0x05, 0x3a, 0x5f);
const EMPTY: RGBColor = RGBColor(0xf1, 0xf3, 0xf5);

/// Sizes are given for a picture of this width in pixels; other widths scale them.
const NORMAL_WIDTH: f64 = 1400.0;

pub(super) fn png(title: &str, panels: &[Panel], width: u32) -> Result<Vec<u8>, Failure> {
    let page = PictureLayout::new(panels.len(), width);
    let mut pixels = vec![0; page.width as usize * page.height as usize * 3];
    {
        let root =
            BitMapBackend::with_buffer(&mut pixels, (page.width, page.height)).into_drawing_area();
        page.draw(&root, title, panels)?;
    }
    let mut bytes = Vec::new();
    let mut encoder = png::Encoder::new(&mut bytes, page.width, page.height);
    encoder.set_color(png::ColorType::Rgb);
    encoder.set_depth(png::BitDepth::Eight);
    let mut writer = encoder.write_header().map_err(failed)?;
    writer.write_image_data(&pixels).map_err(failed)?;
    writer.finish().map_err(failed)?;
    Ok(bytes)
}

pub(super) fn svg(title: &str, panels: &[Panel], width: u32) -> Result<String, Failure> {
    let page = PictureLayout::new(panels.len(), width);
    let mut text = String::new();
    {
        let root =
            SVGBackend::with_string(&mut text, (page.width, page.height)).into_drawing_area();
        page.draw(&root, title, panels)?;
    }
    Ok(text)
}

fn failed(error: impl Display) -> Failure {
    Failure::Said(format!("drawing: {error}"))
}

/// The size of a picture, and how its panels are arranged.
struct PictureLayout {
    width: u32,
    height: u32,
    columns: usize,
    rows: usize,
    scale: f64,
}

impl PictureLayout {
    fn new(panels: usize, width: u32) -> Self {
        let scale = f64::from(width) / NORMAL_WIDTH;
        let columns = if panels > 1 { 2 } else { 1 };
        let rows = panels.div_ceil(columns).max(1);
        let row = if columns == 1 { 520.0 } else { 400.0 };
        let height = ((TITLE + row * rows as f64) * scale) as u32;
        Self { width, height, columns, rows, scale }
    }

    fn px(&self, size: f64) -> u32 {
        (size * self.scale).round().max(1.0) as u32
    }

    fn font(&self, size: f64, colour: &RGBColor) -> TextStyle<'static> {
        (FAMILY, f64::from(self.px(size))).into_font().color(colour)
    }

    fn draw<DB: DrawingBackend>(
        &self,
        root: &DrawingArea<DB, Shift>,
        title: &str,
        panels: &[Panel],
    ) -> Result<(), Failure>
    where
        DB::ErrorType: 'static,
    {
        register_font(FAMILY, FontStyle::Normal, FONT)
            .map_err(|_| failed("the font is damaged"))?;
        root.fill(&WHITE).map_err(failed)?;
        let (head, body) = root.split_vertically(self.px(TITLE));
        head.draw(&Text::new(
            title.to_owned(),
            (self.px(24.0) as i32, self.px(16.0) as i32),
            self.font(24.0, &INK),
        ))
        .map_err(failed)?;
        for (area, panel) in body.split_evenly((self.rows, self.columns)).iter().zip(panels) {
            self.panel(area, panel)?;
        }
        root.present().map_err(failed)
    }

    fn panel<DB: DrawingBackend>(
        &self,
        area: &DrawingArea<DB, Shift>,
        panel: &Panel,
    ) -> Result<(), Failure>
    where
        DB::ErrorType: 'static,
    {
        let plot = if panel.title.is_empty() {
            area.clone()
        } else {
            let (head, plot) = area.split_vertically(self.px(34.0));
            let at = (self.px(24.0) as i32, self.px(10.0) as i32);
            head.draw(&Text::new(panel.title.clone(), at, self.font(18.0, &INK)))
                .map_err(failed)?;
            plot
        };
        match &panel.marks {
            Marks::Named(rows) => self.named(&plot, rows, panel.x.to),
            Marks::Grid { columns, cells } => self.grid(&plot, *columns, cells),
            Marks::Line(_) | Marks::Bars(_) if panel.x.log => {
                let x = (panel.x.from..panel.x.to).log_scale();
                self.axes(&plot, panel, x.with_key_points(panel.x.log_ticks()))
            }
            Marks::Line(_) | Marks::Bars(_) => self.axes(&plot, panel, panel.x.from..panel.x.to),
        }
    }

    fn axes<DB: DrawingBackend, X>(
        &self,
        area: &DrawingArea<DB, Shift>,
        panel: &Panel,
        x: X,
    ) -> Result<(), Failure>
    where
        DB::ErrorType: 'static,
        X: AsRangedCoord<Value = f64>,
        X::CoordDescType: ValueFormatter<f64>,
    {
        // Bars show counts, so an axis of small counts has no ticks between whole numbers.
        let is_count = matches!(panel.marks, Marks::Bars(_));
        let labels = if is_count { LABELS.min(panel.y.to as usize).max(1) } else { LABELS };
        let mut chart = ChartBuilder::on(area)
            .margin(self.px(14.0))
            .margin_right(self.px(34.0))
            .x_label_area_size(self.px(52.0))
            .y_label_area_size(self.px(80.0))
            .build_cartesian_2d(x, panel.y.from..panel.y.to)
            .map_err(failed)?;
        chart
            .configure_mesh()
            .x_desc(panel.x.label.as_str())
            .y_desc(panel.y.label.as_str())
            .x_labels(8)
            .y_labels(labels)
            .x_label_formatter(&|value| short(*value))
            .y_label_formatter(&|value| short(*value))
            .label_style(self.font(15.0, &SOFT))
            .axis_desc_style(self.font(16.0, &INK))
            .axis_style(RULE)
            .bold_line_style(RULE)
            .light_line_style(TRANSPARENT)
            .draw()
            .map_err(failed)?;
        match &panel.marks {
            Marks::Line(points) => {
                chart
                    .draw_series([PathElement::new(
                        points.clone(),
                        BLUE.stroke_width(self.px(1.0)),
                    )])
                    .map_err(failed)?;
            }
            Marks::Bars(bars) => {
                let bars = bars.iter().map(|&(left, right, height)| {
                    Rectangle::new([(left, 0.0), (right, height)], BLUE.filled())
                });
                chart.draw_series(bars).map_err(failed)?;
            }
            Marks::Named(_) | Marks::Grid { .. } => {}
        }
        Ok(())
    }

    /// Bars with their names above them, because names may have any length.
    fn named<DB: DrawingBackend>(
        &self,
        area: &DrawingArea<DB, Shift>,
        rows: &[(String, f64)],
        to: f64,
    ) -> Result<(), Failure>
    where
        DB::ErrorType: 'static,
    {
        let (width, height) = area.dim_in_pixel();
        let left = self.px(24.0) as i32;
        let room = f64::from(width) - f64::from(self.px(70.0));
        let total: f64 = rows.iter().map(|row| row.1).sum();
        let step = (f64::from(height) / rows.len().max(1) as f64).min(f64::from(self.px(56.0)));
        for (i, (name, value)) in rows.iter().enumerate() {
            let top = (step * i as f64) as i32 + self.px(6.0) as i32;
            let words =
                format!("{name}: {} ({:.1} %)", rounded(*value), value * 100.0 / total.max(1.0));
            let size = (step * 0.36 / self.scale).min(15.0);
            area.draw(&Text::new(words, (left, top), self.font(size, &INK))).map_err(failed)?;
            let end = left + (room * value / to.max(1.0)).round().max(1.0) as i32;
            let bar = [(left, top + (step * 0.42) as i32), (end, top + (step * 0.78) as i32)];
            area.draw(&Rectangle::new(bar, BLUE.filled())).map_err(failed)?;
        }
        Ok(())
    }

    fn grid<DB: DrawingBackend>(
        &self,
        area: &DrawingArea<DB, Shift>,
        columns: usize,
        cells: &[Option<(String, f64)>],
    ) -> Result<(), Failure>
    where
        DB::ErrorType: 'static,
    {
        let (width, height) = area.dim_in_pixel();
        let left = self.px(24.0);
        let top = self.px(6.0);
        let foot = self.px(40.0);
        let rows = cells.len().div_ceil(columns.max(1)).max(1);
        let side = (f64::from(width.saturating_sub(left * 2)) / columns.max(1) as f64)
            .min(f64::from(height.saturating_sub(top + foot)) / rows as f64);
        let most = cells.iter().flatten().map(|cell| cell.1).fold(0.0, f64::max);
        let gap = if side > 6.0 { 1 } else { 0 };
        let place = |n: usize, start: u32| f64::from(start) + side * n as f64;
        for (i, cell) in cells.iter().enumerate() {
            let row = i / columns.max(1);
            let column = i % columns.max(1);
            let from = (place(column, left) as i32, place(row, top) as i32);
            let to = (place(column + 1, left) as i32 - gap, place(row + 1, top) as i32 - gap);
            let colour = cell.as_ref().map_or(EMPTY, |cell| shade(cell.1 / most));
            area.draw(&Rectangle::new([from, to], colour.filled())).map_err(failed)?;
        }
        let below = place(rows, top) as i32 + self.px(10.0) as i32;
        let words = format!(
            "in the order of channel numbers, row by row; darkest: {} samples",
            rounded(most)
        );
        let style = self.font(14.0, &SOFT).pos(Pos::new(HPos::Left, VPos::Top));
        area.draw(&Text::new(words, (left as i32, below), style)).map_err(failed)
    }
}

/// The number of labels of a vertical axis.
const LABELS: usize = 6;

/// The height of the title in pixels.
const TITLE: f64 = 56.0;

/// A colour from pale to dark, by the square root of the share: small shares are then visible.
fn shade(share: f64) -> RGBColor {
    let at = share.clamp(0.0, 1.0).sqrt();
    let mix = |a: u8, b: u8| (f64::from(a) + (f64::from(b) - f64::from(a)) * at).round() as u8;
    RGBColor(mix(PALE.0, DARK.0), mix(PALE.1, DARK.1), mix(PALE.2, DARK.2))
}
