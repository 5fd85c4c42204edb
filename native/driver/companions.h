// Libraries that stand where NVIDIA's would, for processes that va100's own Python did not start.
#pragma once

namespace va {

// Open them under NVIDIA's names, so that clients that look for those find these; once a process,
// and only in one with Python in it.  Nothing happens where they are open already.
void open_companions();

} // namespace va
