// Pools: what they refuse, and handles of them, which the same process can import again.
#include "../host_runtime/check.h"

#define REFUSED(call) CHECK((call) == hipErrorInvalidValue)

const auto kFile = hipMemHandleTypePosixFileDescriptor;

hipMemPoolProps properties() {
  hipMemPoolProps wanted = {};
  wanted.allocType = hipMemAllocationTypePinned;
  wanted.location.type = hipMemLocationTypeDevice;
  wanted.handleTypes = kFile;
  return wanted;
}

int arguments(hipMemPool_t pool, hipStream_t gone) {
  hipMemPool_t other;
  hipMemPoolProps wrong = properties();
  wrong.location.id = 1;
  REFUSED(hipMemPoolCreate(&other, &wrong));
  wrong = properties();
  wrong.location.type = hipMemLocationTypeInvalid;
  REFUSED(hipMemPoolCreate(&other, &wrong));
  wrong = properties();
  wrong.allocType = hipMemAllocationTypeInvalid;
  REFUSED(hipMemPoolCreate(&other, &wrong));

  void* x;
  REFUSED(hipMallocFromPoolAsync(&x, 256, nullptr, nullptr));
  REFUSED(hipMallocFromPoolAsync(&x, 256, reinterpret_cast<hipMemPool_t>(&x), nullptr));
  REFUSED(hipMallocAsync(nullptr, 256, nullptr));
  CHECK(hipMallocAsync(&x, 256, gone) == hipErrorInvalidHandle);
  CHECK(hipMallocFromPoolAsync(&x, 256, pool, gone) == hipErrorInvalidHandle);
  OK(hipMallocFromPoolAsync(&x, 256, pool, nullptr));
  CHECK(hipFreeAsync(x, gone) == hipErrorInvalidHandle);
  OK(hipFreeAsync(x, nullptr));

  hipMemAccessDesc access = {};
  access.location.type = hipMemLocationTypeDevice;
  access.flags = hipMemAccessFlagsProtReadWrite;
  OK(hipMemPoolSetAccess(pool, &access, 1));
  CHECK(hipMemPoolSetAccess(pool, &access, 2) == hipErrorInvalidDevice);
  access.location.id = 1;
  CHECK(hipMemPoolSetAccess(pool, &access, 1) == hipErrorInvalidDevice);
  access.location.id = 0;
  access.flags = hipMemAccessFlagsProtNone;
  CHECK(hipMemPoolSetAccess(pool, &access, 1) == hipErrorInvalidDevice);
  hipMemAccessFlags flags;
  OK(hipMemPoolGetAccess(&flags, pool, &access.location));
  CHECK(flags == hipMemAccessFlagsProtReadWrite);
  access.location.id = 1;
  REFUSED(hipMemPoolGetAccess(&flags, pool, &access.location));
  return 0;
}

int exports(hipMemPool_t pool) {
  int handle = -1;
  hipMemPool_t secret, imported;
  hipMemPoolProps none = properties();
  none.handleTypes = hipMemHandleTypeNone;
  OK(hipMemPoolCreate(&secret, &none));
  REFUSED(hipMemPoolExportToShareableHandle(&handle, secret, kFile, 0));
  REFUSED(hipMemPoolExportToShareableHandle(&handle, secret, hipMemHandleTypeNone, 0));
  REFUSED(hipMemPoolExportToShareableHandle(nullptr, pool, kFile, 0));
  OK(hipMemPoolExportToShareableHandle(&handle, pool, kFile, 0));
  void* given = reinterpret_cast<void*>(static_cast<intptr_t>(handle));
  REFUSED(hipMemPoolImportFromShareableHandle(&imported, nullptr, kFile, 0));
  REFUSED(hipMemPoolImportFromShareableHandle(&imported, given, hipMemHandleTypeNone, 0));
  OK(hipMemPoolImportFromShareableHandle(&imported, given, kFile, 0));
  void* standard_output = reinterpret_cast<void*>(1);  // a file, but no pool
  CHECK(hipMemPoolImportFromShareableHandle(&imported, standard_output, kFile, 0) ==
        hipErrorNotSupported);

  int *x, *again, host[64];
  hipMemPoolPtrExportData data;
  OK(hipMallocFromPoolAsync(reinterpret_cast<void**>(&x), sizeof host, pool, nullptr));
  CHECK(hipMemPoolExportPointer(&data, host) == hipErrorOutOfMemory);
  OK(hipMemPoolExportPointer(&data, x));
  OK(hipMemPoolImportPointer(reinterpret_cast<void**>(&again), imported, &data));
  OK(hipMemset(x, 0, sizeof host));
  OK(hipMemcpy(host, again, sizeof host, hipMemcpyDeviceToHost));
  for (int value : host) CHECK(value == 0);
  OK(hipMemPoolDestroy(imported));
  REFUSED(hipMemPoolImportPointer(reinterpret_cast<void**>(&again), imported, &data));
  return 0;
}

int main() {
  hipMemPool_t pool;
  hipStream_t gone;
  const hipMemPoolProps wanted = properties();
  OK(hipMemPoolCreate(&pool, &wanted));
  OK(hipStreamCreate(&gone));
  OK(hipStreamDestroy(gone));
  if (const int wrong = arguments(pool, gone)) return wrong;
  return exports(pool);
}
