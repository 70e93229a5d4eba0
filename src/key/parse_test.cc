#include <gtest/gtest.h>
#include "key/key.h"
