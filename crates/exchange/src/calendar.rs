//! Conversion between dates of the proleptic Gregorian calendar and days since 1970-01-01. Years are counted in eras of
//! 400 years that begin in March, so that a leap day is the last day of its year (H. Hinnant, `days_from_civil`).

/// The number of days from 1 March of the year 0 to 1 January 1970.
const EPOCH: i64 = 719_468;
/// The number of days in 400 years.
const ERA: i64 = 146_097;

/// Converts a year, a month (1 to 12) and a day (from 1) to the number of days since 1970-01-01. A day beyond the end
/// of its month is counted into the next month.
#[must_use]
pub const fn days_from_civil(year: i64, month: i64, day: i64) -> i64 {
    let year = if month <= 2 { year - 1 } else { year };
    let era = year.div_euclid(400);
    let year_of_era = year.rem_euclid(400);
    let day_of_year = (153 * ((month + 9) % 12) + 2) / 5 + day - 1;
    era * ERA + year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year - EPOCH
}

/// Converts a number of days since 1970-01-01 to a year, a month and a day.
#[must_use]
pub const fn civil_from_days(days: i64) -> (i64, i64, i64) {
    let days = days + EPOCH;
    let era = days.div_euclid(ERA);
    let day_of_era = days.rem_euclid(ERA);
    let year_of_era =
        (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let shifted = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * shifted + 2) / 5 + 1;
    let month = if shifted < 10 { shifted + 3 } else { shifted - 9 };
    let year = year_of_era + era * 400;
    (if month <= 2 { year + 1 } else { year }, month, day)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_day_of_an_era_is_the_one_behind_the_day_before() {
        let is_leap = |year: i64| year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
        let (mut year, mut month, mut day) = (1, 1, 1);
        for days in -719_162..=-719_162 + ERA {
            assert_eq!(civil_from_days(days), (year, month, day), "{days}");
            assert_eq!(days_from_civil(year, month, day), days);
            let last = match month {
                2 if is_leap(year) => 29,
                2 => 28,
                4 | 6 | 9 | 11 => 30,
                _ => 31,
            };
            (year, month, day) = match (month, day) {
                (12, 31) => (year + 1, 1, 1),
                _ if day == last => (year, month + 1, 1),
                _ => (year, month, day + 1),
            };
        }
        assert_eq!((year, month, day), (401, 1, 2), "400 years have passed");
    }

    #[test]
    fn days_are_counted_from_1970() {
        for (days, date) in [
            (0, (1970, 1, 1)),
            (-1, (1969, 12, 31)),
            (19_782, (2024, 2, 29)),
            (2_932_896, (9999, 12, 31)),
        ] {
            assert_eq!(civil_from_days(days), date);
        }
        assert_eq!(civil_from_days(days_from_civil(2023, 2, 30)), (2023, 3, 2));
    }
}
