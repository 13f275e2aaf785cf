//! Two stacks, a wire between them, and the fuzzer's bytes that choose what happens next.
mod mutate;
mod world;

use arbitrary::Unstructured;
use world::World;

/// Steps of one run; a corpus entry that needs more is of no use to anybody who reads it.
const STEPS: usize = 600;

/// Changes packets on their way: nothing panics, deadlines lie ahead, output ends. The content of
/// the streams is not checked.
pub fn hostile(data: &[u8]) {
    let mut choices = Unstructured::new(data);
    let mut world = World::new(&mut choices);
    for _ in 0..STEPS {
        if choices.is_empty() {
            break;
        }
        match choices.arbitrary::<u8>().unwrap_or(0) % 4 {
            0 => world.application(&mut choices),
            1 => world.carry(&mut choices),
            2 => world.attack(&mut choices),
            _ => world.pass_time(&mut choices),
        }
        world.check();
    }
    world.end();
}

/// Loses, repeats, reorders and delays packets, but never changes them: applications read exactly
/// what was written, and all of it arrives once the wire is honest.
pub fn streams(data: &[u8]) {
    let mut choices = Unstructured::new(data);
    let mut world = World::new(&mut choices);
    for _ in 0..STEPS {
        if choices.is_empty() {
            break;
        }
        match choices.arbitrary::<u8>().unwrap_or(0) % 3 {
            0 => world.application(&mut choices),
            1 => world.carry(&mut choices),
            _ => world.pass_time(&mut choices),
        }
        world.check();
        world.check_streams();
    }
    world.deliver_all();
    world.end();
}
