//! A picture of an SVG, for clients that show no SVG. The letters are those of a font in this program, so that a
//! picture is the same on every machine.

use std::sync::{Arc, LazyLock};

use resvg::tiny_skia::{Pixmap, Transform};
use resvg::usvg::{Options, Tree, fontdb};

use crate::fault::{Fault, Kind};

/// DejaVu Sans: its Latin, Greek and mathematical characters.
const FONT: &[u8] = include_bytes!("../../assets/DejaVuSans-subset.ttf");
const FAMILY: &str = "DejaVu Sans";
/// Width of a picture, in pixels.
const WIDTH_PIXELS: f32 = 1_170.0;
/// Greatest height of a picture, in pixels.
const HEIGHT_PIXELS_MAX: u32 = 8_192;

static OPTIONS: LazyLock<Options<'static>> = LazyLock::new(|| {
    let mut fonts = fontdb::Database::new();
    fonts.load_font_data(FONT.to_vec());
    fonts.set_sans_serif_family(FAMILY);
    Options {
        font_family: FAMILY.to_owned(),
        fontdb: Arc::new(fonts),
        ..Options::default()
    }
});

/// Returns the picture as a PNG.
///
/// # Errors
/// [`Fault`] if the text is no SVG, or is higher than a picture may be.
pub(super) fn png(svg: &str) -> Result<Vec<u8>, Fault> {
    let wrong = |what: String| Fault::new(Kind::InternalError, format!("the plot: {what}"));
    let tree = Tree::from_str(svg, &OPTIONS).map_err(|error| wrong(error.to_string()))?;
    let scale = WIDTH_PIXELS / tree.size().width();
    let size = tree.size().to_int_size().scale_by(scale);
    let size = size.filter(|size| size.height() <= HEIGHT_PIXELS_MAX);
    let size = size.ok_or_else(|| wrong("it is too high for a picture".to_owned()))?;
    let pixels = Pixmap::new(size.width(), size.height());
    let mut pixels = pixels.ok_or_else(|| wrong("it has no size".to_owned()))?;
    resvg::render(
        &tree,
        Transform::from_scale(scale, scale),
        &mut pixels.as_mut(),
    );
    pixels
        .encode_png()
        .map_err(|error| wrong(error.to_string()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use pbpk::csv::{CurveSeries, CurveTable};
    use pbpk::plot::{PlotOptions, svg};

    /// Returns how many pixels are dark, below this row.
    fn dark(png: &[u8], rows: std::ops::Range<u32>) -> usize {
        let pixels = Pixmap::decode_png(png).unwrap();
        assert_eq!(pixels.width(), 1_170);
        let is_dark = |x, y| {
            pixels.pixel(x, y).is_some_and(|p| {
                p.alpha() == 255 && p.red() < 90 && p.green() < 90 && p.blue() < 90
            })
        };
        rows.flat_map(|y| (0..pixels.width()).map(move |x| (x, y)))
            .filter(|(x, y)| is_dark(*x, *y))
            .count()
    }

    fn draw_plot(title: &str) -> Vec<u8> {
        let curves = CurveTable {
            times: vec![0.0, 60.0, 120.0],
            series: vec![CurveSeries {
                name: "Organism|Plasma".to_owned(),
                unit: "µmol/l".to_owned(),
                values: vec![0.0, 2.0, 1.0],
            }],
        };
        let options = PlotOptions {
            title: title.to_owned(),
            log: false,
            time_unit: None,
        };
        png(&svg(&curves, &options).unwrap()).unwrap()
    }

    #[test]
    fn letters_are_drawn_on_a_light_ground() {
        let picture = draw_plot("Height µ");
        assert_eq!(picture.get(1..4), Some(&b"PNG"[..]));
        // The title's letters are in the first rows, and nothing is there without a title.
        assert!(dark(&picture, 20..64) > 300, "{}", dark(&picture, 20..64));
        assert_eq!(dark(&draw_plot(""), 0..20), 0);
        let pixels = Pixmap::decode_png(&picture).unwrap();
        let corner = pixels.pixel(0, 0).unwrap();
        assert_eq!((corner.red(), corner.alpha()), (255, 255));
    }

    #[test]
    fn what_is_no_svg_is_said_to_be_none() {
        assert!(png("<svg").is_err());
        assert!(png("<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 1 100\"/>").is_err());
    }
}
