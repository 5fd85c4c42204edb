// The last messages of the driver, for clients that ask.
#pragma once

namespace va {

enum class LogLevel { kError = 0, kWarning = 1 };

void keep_log(LogLevel level, const char *text);

} // namespace va
