// Whether the last line on the terminal of stderr has no end yet, such as a job's progress bar that
// this process passes on. The next message then begins a line of its own. Any thread may call this.
#pragma once

namespace lockstep {

void set_mid_line(bool mid_line);
// Ends such a line. Call it before a message is written to stderr; log::write() does.
void end_line();

}  // namespace lockstep
