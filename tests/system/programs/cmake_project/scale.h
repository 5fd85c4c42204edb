// What the library offers to C++.
#pragma once

void scale(float *values, float factor, int count);
