// The version of this library.
#pragma once

namespace grebe {

// "major.minor.patch". Lives as long as the program.
const char* Version();

}  // namespace grebe
