//! The scale of an axis.

/// Figures that differ by more than this factor get a logarithmic axis.
const LINEAR: f64 = 20.0;

/// What an axis shows, and how.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Scale {
    /// Whether the axis is logarithmic.
    pub log: bool,
    /// The figure at the left end. It is positive if the axis is logarithmic, and not positive otherwise.
    pub from: f64,
    /// The figure at the right end.
    pub to: f64,
}

impl Scale {
    /// The scale that shows all of `figures`.
    pub fn of(figures: impl IntoIterator<Item = f64>) -> Self {
        let (mut least, mut least_positive, mut most) = (0.0_f64, f64::INFINITY, 0.0_f64);
        for figure in figures {
            (least, most) = (least.min(figure), most.max(figure));
            if figure > 0.0 {
                least_positive = least_positive.min(figure);
            }
        }
        if most / least_positive > LINEAR {
            return Self::of_decades(least_positive, most);
        }
        let wider = |figure: f64| (figure * 1.05).clamp(-f64::MAX, f64::MAX);
        let to = if most > least { wider(most) } else { 1.0 };
        Self { log: false, from: wider(least), to }
    }

    /// A logarithmic scale of whole decades, whose ends are labelled. No figure is at an end.
    fn of_decades(least: f64, most: f64) -> Self {
        // An end that was rounded to the wrong side would get no label.
        const ROUNDING: f64 = 1e-9;
        let from = 10_f64.powf((least / 1.1).log10().floor()) * (1.0 - ROUNDING);
        let to = 10_f64.powf((most * 1.1).log10().ceil()) * (1.0 + ROUNDING);
        Self { log: true, from: if from > 0.0 { from } else { least }, to: to.min(f64::MAX) }
    }

    /// The figure at the place where `figure` is drawn: the left end for what a logarithmic axis cannot show.
    pub fn place(&self, figure: f64) -> f64 {
        if self.log { figure.max(self.from) } else { figure }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_that_differ_much_get_a_logarithmic_axis() {
        let log = |figures: &[f64]| Scale::of(figures.iter().copied()).log;
        assert!(!log(&[1.0, 20.0]));
        assert!(log(&[1.0, 20.1]));
        assert!(!log(&[0.0, 5.0]), "zero is no small figure");
        assert!(!log(&[-100.0, 1.0]));
        assert!(!log(&[]));
    }

    #[test]
    fn a_logarithmic_axis_has_whole_decades() {
        let ends = |least, most| {
            let Scale { from, to, .. } = Scale::of([least, most]);
            [from, to].map(crate::report::rounded)
        };
        assert_eq!(ends(0.23, 9.5), [0.1, 100.0]);
        assert_eq!(ends(0.23, 9.0), [0.1, 10.0]);
        assert_eq!(ends(1.0, 1000.0), [0.1, 10000.0]);
    }

    #[test]
    fn every_figure_is_within_its_scale() {
        let all: [&[f64]; 8] = [
            &[3.0, 4.0],
            &[0.0],
            &[0.0, 1.0, 100.0],
            &[-2.0, 1.0],
            &[-2.0],
            &[-1.0, 1.0, 90.0],
            &[1e308, 1.7e308],
            &[5e-324, 1.7e308],
        ];
        for figures in all {
            let scale = Scale::of(figures.iter().copied());
            assert!(scale.from < scale.to && scale.to.is_finite(), "{figures:?}: {scale:?}");
            for &figure in figures {
                let place = scale.place(figure);
                assert!(scale.from <= place && place <= scale.to, "{figure}: {scale:?}");
                assert!(place == figure || (scale.log && figure <= 0.0), "{figure}: {scale:?}");
            }
        }
    }
}
