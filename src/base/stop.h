// StopToken is part of the public API; rooms include it from here.
#pragma once

#include "base/status.h"
#include "grebe/stop.h"
