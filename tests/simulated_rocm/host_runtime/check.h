// A whole HIP program as people write them: what does not hold ends it with the line.
#include <hip/hip_runtime.h>

#include <cstdio>
#include <cstring>
#include <vector>

#define CHECK(condition)                                      \
  do {                                                        \
    if (!(condition)) {                                       \
      printf("line %d: %s\n", __LINE__, #condition);          \
      return __LINE__;                                        \
    }                                                         \
  } while (0)
#define OK(call) CHECK((call) == hipSuccess)
