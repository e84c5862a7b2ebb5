/// Divisions of whole numbers by zero: this host may stop at them, the chip's scalar unit does not.
#pragma once

namespace opkit {

/// Lets the code that a signal has stopped at a division by zero go on behind it, with a quotient of 0 and the dividend
/// as the remainder, which is what hosts give that do not stop. Returns false, and changes nothing, where the code was
/// stopped by something else, such as a quotient that does not fit. `context` is the handler's.
bool step_over_division_by_zero(void* context);

}  // namespace opkit
