//! Runs histories: `likewise-simulation FIRST NUMBER` runs a range of seeds, `likewise-simulation SEED` runs one seed
//! and prints everything it does.

use std::collections::BTreeMap;
use std::process::ExitCode;
use std::time::Instant;

use likewise_simulation::history;

fn main() -> ExitCode {
    let given: Vec<u64> = std::env::args()
        .skip(1)
        .filter_map(|number| number.parse().ok())
        .collect();
    match given[..] {
        [seed] => match history::run(seed, true) {
            Ok(ending) => {
                println!("{ending:?}");
                ExitCode::SUCCESS
            }
            Err(reason) => {
                println!("{reason}");
                ExitCode::FAILURE
            }
        },
        [first, number] => run_all(first, number),
        _ => {
            eprintln!("usage: likewise-simulation SEED | FIRST NUMBER");
            ExitCode::from(2)
        }
    }
}

fn run_all(first: u64, number: u64) -> ExitCode {
    let begin = Instant::now();
    let mut num_failed = 0;
    let mut totals: BTreeMap<String, u64> = BTreeMap::new();
    for seed in first..first + number {
        match history::run(seed, false) {
            Ok(ending) => {
                let mut count = |name: &str, by: u64| {
                    *totals.entry(name.to_owned()).or_default() += by;
                };
                count("histories", 1);
                count(&format!("histories {:?}", ending.honesty), 1);
                count(
                    "ended by damage that was reported",
                    u64::from(ending.is_detected),
                );
                count("documents acknowledged", ending.num_acknowledged as u64);
                count("kills and power cuts", ending.num_deaths as u64);
                count("operations", ending.num_operations);
                count("errors of the disk", ending.num_failures);
                count("lies of the disk", ending.num_lies);
            }
            Err(reason) => {
                num_failed += 1;
                println!(
                    "seed {seed} failed: {}",
                    reason.chars().take(600).collect::<String>()
                );
            }
        }
    }
    for (name, total) in totals {
        println!("{total} {name}");
    }
    let seconds = begin.elapsed().as_secs_f64();
    println!(
        "{number} seeds from {first} in {seconds:.1} s ({:.1} ms each), {num_failed} failed",
        1000.0 * seconds / number.max(1) as f64
    );
    match num_failed {
        0 => ExitCode::SUCCESS,
        _ => ExitCode::FAILURE,
    }
}
