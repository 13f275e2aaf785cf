//! Counts that do not depend on time are taken side by side, as many at once as there are
//! processors.

use crate::report::Failure;
use std::sync::Mutex;

/// What `count` says of each of `items`, in their order.
///
/// # Errors
/// The first, in that order, that `count` returns.
pub(crate) fn side_by_side<T: Sync, R: Send>(
    items: &[T],
    count: impl Fn(&T) -> Result<R, String> + Sync,
) -> Result<Vec<R>, Failure> {
    let next = Mutex::new(items.iter().enumerate());
    let counts = Mutex::new(Vec::with_capacity(items.len()));
    let work = || {
        while let Some((place, item)) = next.lock().ok().and_then(|mut next| next.next()) {
            let count = count(item);
            if let Ok(mut counts) = counts.lock() {
                counts.push((place, count));
            }
        }
    };
    std::thread::scope(|scope| {
        let processors = std::thread::available_parallelism().map_or(1, usize::from);
        (0..processors).for_each(|_| drop(scope.spawn(work)));
    });
    let mut counts = counts.into_inner().map_err(|_| "a count was not taken")?;
    counts.sort_by_key(|(place, _)| *place);
    Ok(counts.into_iter().map(|(_, count)| count).collect::<Result<_, String>>()?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_come_in_the_order_of_what_was_counted() {
        let doubled = side_by_side(&[3, 1, 2], |item| Ok(2 * item));
        assert_eq!(doubled.unwrap(), [6, 2, 4]);
    }

    #[test]
    fn the_first_failure_is_the_one_that_is_told() {
        let count = |item: &u32| if *item > 1 { Err(format!("not {item}")) } else { Ok(()) };
        assert_eq!(side_by_side(&[1, 5, 3], count).unwrap_err().to_string(), "not 5");
    }
}
