// What movement.h needs once.
#include "movement.h"

const u8 kNothing[16] = {};
