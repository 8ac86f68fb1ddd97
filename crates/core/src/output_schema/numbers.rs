//! Numbers of JSON, compared by their decimal value.

use serde_json::Value;
use std::cmp::Ordering;

/// Returns a number without a fraction, also one that is written as `2.0`.
pub fn whole(value: &Value) -> Option<u64> {
    let float = || value.as_f64().and_then(integer);
    let float = || float().and_then(|number| u64::try_from(number).ok());
    value.as_u64().or_else(float)
}

/// Returns the integer that a value is, also one that is written as `2.0`.
pub fn as_integer(value: &Value) -> Option<i128> {
    let signed = value.as_i64().map(i128::from);
    let integer_of = || signed.or_else(|| value.as_u64().map(i128::from));
    integer_of().or_else(|| value.as_f64().and_then(integer))
}

/// Returns a float as an integer, if it is one.
#[expect(clippy::cast_possible_truncation, reason = "the range is checked")]
fn integer(float: f64) -> Option<i128> {
    (float.fract() == 0.0 && float.abs() < 1e37).then_some(float as i128)
}

/// Compares two numbers. Returns `None` if a value is not a number.
pub fn compare(a: &Value, b: &Value) -> Option<Ordering> {
    match (as_integer(a), as_integer(b)) {
        (Some(a), Some(b)) => Some(a.cmp(&b)),
        _ => a.as_f64()?.partial_cmp(&b.as_f64()?),
    }
}

/// Returns whether a number is a multiple of another one. The shortest decimal form of a float is its value:
/// 4.35 is a multiple of 0.01.
pub fn is_multiple(value: &Value, of: &Value) -> bool {
    let (Some((value, value_exponent)), Some((of, of_exponent))) = (decimal(value), decimal(of))
    else {
        return true;
    };
    if value == 0 || of == 0 {
        return value == 0;
    }
    if value_exponent >= of_exponent {
        // Digits are appended to the value, as to a remainder of a division by hand.
        let mut remainder = value % of;
        for _ in of_exponent..value_exponent {
            if remainder == 0 {
                break;
            }
            remainder = remainder * 10 % of;
        }
        return remainder == 0;
    }
    let factor = u32::try_from(of_exponent - value_exponent).ok();
    let factor = factor.and_then(|exponent| 10_u128.checked_pow(exponent));
    // A divisor of more digits than the value has is larger than the value.
    let divisor = factor.and_then(|factor| of.checked_mul(factor));
    divisor.is_some_and(|divisor| value % divisor == 0)
}

/// Returns the digits of a number without its sign, and their exponent of ten.
fn decimal(value: &Value) -> Option<(u128, i32)> {
    if !value.is_f64() {
        return Some((as_integer(value)?.unsigned_abs(), 0));
    }
    let text = format!("{:e}", value.as_f64()?.abs());
    let (digits, exponent) = text.split_once('e')?;
    let (whole, fraction) = digits.split_once('.').unwrap_or((digits, ""));
    let digits = format!("{whole}{fraction}").parse().ok()?;
    let exponent: i32 = exponent.parse().ok()?;
    Some((digits, exponent - i32::try_from(fraction.len()).ok()?))
}
