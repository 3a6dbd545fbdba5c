//! `loss.png`: the training loss and the dev metric over the steps.

use std::{fs, path::Path, sync::Once};

use plotters::{prelude::*, style::FontStyle};

use super::Line;
use crate::error::{Error, Result};

/// Width and height in pixels.
const SIZE: (u32, u32) = (800, 480);

/// Draws the log at `log` to `path`.
pub(super) fn losses(log: &Path, path: &Path, metric: &str) -> Result<()> {
    let text = fs::read_to_string(log).map_err(Error::io(log))?;
    let lines: Vec<Line> =
        text.lines().filter_map(|line| serde_json::from_str(line).ok()).collect();
    draw(&lines, path, metric)
        .map_err(|error| Error::format(path, format!("the plot cannot be drawn: {error}")))
}

fn draw(lines: &[Line], path: &Path, metric: &str) -> Result<(), Box<dyn std::error::Error>> {
    register_font();
    let steps = lines.last().map_or(1, |line| line.step) as f64;
    let highest = lines.iter().map(|line| line.loss).fold(f64::MIN_POSITIVE, f64::max);
    let area = BitMapBackend::new(path, SIZE).into_drawing_area();
    area.fill(&WHITE)?;
    let mut chart = ChartBuilder::on(&area)
        .margin(12)
        .x_label_area_size(36)
        .y_label_area_size(52)
        .right_y_label_area_size(52)
        .build_cartesian_2d(0.0..steps, 0.0..highest * 1.05)?
        .set_secondary_coord(0.0..steps, 0.0..1.0);
    chart.configure_mesh().x_desc("step").y_desc("loss").light_line_style(WHITE).draw()?;
    chart.configure_secondary_axes().y_desc(format!("dev {metric}")).draw()?;
    let losses = lines.iter().map(|line| (line.step as f64, line.loss));
    chart
        .draw_series(LineSeries::new(losses, &BLUE))?
        .label("training loss (left)")
        .legend(|(x, y)| PathElement::new([(x, y), (x + 18, y)], BLUE));
    let dev = lines.iter().filter_map(|line| Some((line.step as f64, line.dev?)));
    chart
        .draw_secondary_series(LineSeries::new(dev, &RED))?
        .label(format!("dev {metric} (right)"))
        .legend(|(x, y)| PathElement::new([(x, y), (x + 18, y)], RED));
    chart.configure_series_labels().background_style(WHITE).border_style(BLACK).draw()?;
    area.present()?;
    Ok(())
}

/// A font that travels with the program, so that a machine without fonts draws the same plot.
fn register_font() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let font = epaint_default_fonts::UBUNTU_LIGHT;
        // A plot without letters is better than none.
        let _ = plotters::style::register_font("sans-serif", FontStyle::Normal, font);
    });
}
