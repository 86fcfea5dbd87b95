// The device itself: hooks, guard, streams, generators, memory.

#include "device.h"

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/EmptyTensor.h>
#include <ATen/core/Generator.h>
#include <ATen/detail/CUDAHooksInterface.h>
#include <c10/core/CPUAllocator.h>
#include <c10/core/impl/DeviceGuardImplInterface.h>
#include <c10/core/impl/InlineEvent.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <map>
#include <mutex>
#include <vector>

namespace torch_device {

namespace {

Owner g_owner{};
Policy g_policy = COMPUTE;
std::atomic<bool> g_installed{false};
std::atomic<bool> g_prepared{false};
std::atomic<bool> g_capturing{false};

// Freed addresses that the owner has not taken yet. Freeing does not call Python: PyTorch frees on
// threads of its own, also while the interpreter ends.
std::mutex g_released_mutex;
std::vector<uint64_t> g_released;

const c10::Device DEVICE(c10::kCUDA, 0);

void release(void* address) {
  if (address == nullptr) return;
  std::lock_guard<std::mutex> lock(g_released_mutex);
  g_released.push_back(reinterpret_cast<uint64_t>(address));
}

struct DeviceAllocator final : c10::Allocator {
  c10::DataPtr allocate(size_t bytes) override {
    if (bytes == 0) return {nullptr, nullptr, &release, DEVICE};
    uint64_t address = 0;
    char error[MOST_TEXT];  // not cleared: it is read only after a failure has written it
    check(g_owner.allocate(bytes, &address, error), error);
    void* place = reinterpret_cast<void*>(address);
    return {place, place, &release, DEVICE};
  }
  c10::DeleterFnPtr raw_deleter() const override { return &release; }
  void copy_data(void* target, const void* source, size_t bytes) const override {
    TORCH_CHECK(g_policy == COMPUTE, "device memory is not accessible from the host");
    std::memcpy(target, source, bytes);
  }
} g_allocator;

// Pinned memory is ordinary host memory whose addresses are known.
struct PinnedAllocator final : c10::Allocator {
  static std::mutex mutex;
  static std::map<uintptr_t, size_t> pieces;
  static void release(void* address) {
    {
      std::lock_guard<std::mutex> lock(mutex);
      pieces.erase(reinterpret_cast<uintptr_t>(address));
    }
    c10::GetDefaultCPUAllocator()->raw_deallocate(address);
  }
  c10::DataPtr allocate(size_t bytes) override {
    void* place = c10::GetDefaultCPUAllocator()->raw_allocate(bytes);
    if (place != nullptr) {
      std::lock_guard<std::mutex> lock(mutex);
      pieces[reinterpret_cast<uintptr_t>(place)] = bytes;
    }
    return {place, place, &release, c10::Device(c10::kCPU)};
  }
  c10::DeleterFnPtr raw_deleter() const override { return &release; }
  void copy_data(void* target, const void* source, size_t bytes) const override {
    std::memcpy(target, source, bytes);
  }
} g_pinned;
std::mutex PinnedAllocator::mutex;
std::map<uintptr_t, size_t> PinnedAllocator::pieces;

// Draws the numbers of PyTorch's CPU generator, with a state of its own.
struct DeviceGenerator final : c10::GeneratorImpl {
  at::Generator host;
  explicit DeviceGenerator(at::Generator generator)
      : c10::GeneratorImpl(DEVICE, c10::DispatchKeySet(c10::DispatchKey::CUDA)),
        host(std::move(generator)) {}
  static c10::DeviceType device_type() { return c10::kCUDA; }
  void set_current_seed(uint64_t seed) override { host.set_current_seed(seed); }
  void set_offset(uint64_t offset) override {
    TORCH_CHECK(offset == 0, "the generator of the simulated GPU has no offset");
  }
  uint64_t get_offset() const override { return 0; }
  uint64_t current_seed() const override { return host.current_seed(); }
  uint64_t seed() override { return host.seed(); }
  void set_state(const c10::TensorImpl& state) override {
    host.unsafeGetGeneratorImpl()->set_state(state);
  }
  c10::intrusive_ptr<c10::TensorImpl> get_state() const override {
    return host.unsafeGetGeneratorImpl()->get_state();
  }
  DeviceGenerator* clone_impl() const override { return new DeviceGenerator(host.clone()); }
};

at::Generator new_generator() {
  return at::make_generator<DeviceGenerator>(at::detail::createCPUGenerator());
}

thread_local c10::StreamId g_stream = 0;
std::atomic<c10::StreamId> g_streams{0};

// All work is done when a call returns, so streams are names and events are always complete.
struct Guard final : c10::impl::DeviceGuardImplInterface {
  c10::DeviceType type() const override { return c10::kCUDA; }
  c10::Device exchangeDevice(c10::Device) const override { return DEVICE; }
  c10::Device getDevice() const override { return DEVICE; }
  void setDevice(c10::Device device) const override {
    TORCH_CHECK(device.index() <= 0, "found device ", device, ", expected cuda:0: there is one");
  }
  void uncheckedSetDevice(c10::Device) const noexcept override {}
  c10::Stream getStream(c10::Device) const override { return stream(g_stream); }
  c10::Stream getDefaultStream(c10::Device) const override { return stream(0); }
  c10::Stream getNewStream(c10::Device, int) const override { return stream(++g_streams); }
  c10::Stream getStreamFromGlobalPool(c10::Device, bool) const override {
    return stream(++g_streams);
  }
  // HIP's null stream, in whose order all work runs. Not `override`: PyTorch 2.9 does not ask.
  void* getStreamNativeHandle(const c10::Stream) const { return nullptr; }
  c10::Stream exchangeStream(c10::Stream next) const override {
    const auto before = g_stream;
    g_stream = next.id();
    return stream(before);
  }
  c10::DeviceIndex deviceCount() const noexcept override { return 1; }
  void record(void** event, const c10::Stream&, const c10::DeviceIndex,
              const c10::EventFlag) const override {
    *event = const_cast<Guard*>(this);
  }
  void block(void*, const c10::Stream&) const override {}
  bool queryEvent(void*) const override { return true; }
  void destroyEvent(void*, const c10::DeviceIndex) const noexcept override {}
  void synchronizeEvent(void*) const override {}
  bool queryStream(const c10::Stream&) const override { return true; }
  void synchronizeStream(const c10::Stream&) const override {}
  void synchronizeDevice(const c10::DeviceIndex) const override {}
  void recordDataPtrOnStream(const c10::DataPtr&, const c10::Stream&) const override {}

 private:
  static c10::Stream stream(c10::StreamId id) {
    return c10::Stream(c10::Stream::UNSAFE, DEVICE, id);
  }
};

struct Hooks final : at::CUDAHooksInterface {
  void init() const override {}
  bool hasCUDA() const override { return g_installed; }
  bool isBuilt() const override { return g_installed; }
  bool isAvailable() const override { return g_installed; }
  bool hasPrimaryContext(c10::DeviceIndex) const override { return g_installed; }
  c10::DeviceIndex deviceCount() const override { return g_installed ? 1 : 0; }
  int getNumGPUs() const override { return g_installed ? 1 : 0; }
  c10::DeviceIndex current_device() const override { return g_installed ? 0 : -1; }
  c10::DeviceIndex getCurrentDevice() const override { return 0; }
  void setCurrentDevice(c10::DeviceIndex) const override {}
  c10::DeviceIndex exchangeDevice(c10::DeviceIndex) const override { return 0; }
  c10::DeviceIndex maybeExchangeDevice(c10::DeviceIndex) const override { return 0; }
  void deviceSynchronize(c10::DeviceIndex) const override {}
  c10::Device getDeviceFromPtr(void*) const override { return DEVICE; }
  bool isPinnedPtr(const void* address) const override { return is_pinned(address); }
  c10::Allocator* getPinnedMemoryAllocator() const override { return &g_pinned; }
  c10::Allocator* getCUDADeviceAllocator() const override { return &g_allocator; }
  const at::Generator& getDefaultGenerator(c10::DeviceIndex) const override {
    return default_generator();
  }
  at::Generator getNewGenerator(c10::DeviceIndex) const override {
    static std::atomic<bool> first{true};  // Python takes the default generator by this first call
    return first.exchange(false) ? default_generator() : new_generator();
  }
  std::string showConfig() const override { return "a simulated GPU"; }
};

// PyTorch asks for the hooks once, while it is imported: this library must be loaded before.
struct Registration {
  bool for_gpus = false;
  Registration() {
    auto* registry = at::CUDAHooksRegistry();
    for_gpus = registry->Has("CUDAHooks");
    if (for_gpus) return;
    registry->Register("CUDAHooks", [](at::CUDAHooksArgs) {
      return std::unique_ptr<at::CUDAHooksInterface>(new Hooks);
    });
  }
} g_registration;

}  // namespace

bool installed() { return g_installed; }
Policy policy() { return g_policy; }
const Owner& owner() { return g_owner; }
c10::Allocator* allocator() { return &g_allocator; }
c10::Allocator* pinned_allocator() { return &g_pinned; }

void check_not_capturing(const char* name) {
  TORCH_CHECK_NOT_IMPLEMENTED(
      !g_capturing, name,
      " cannot be captured in a graph on the simulated GPU: capture launches of kernels only");
}

void check(int status, const char* error) {
  if (status == DONE) return;
  if (status == OUT_OF_MEMORY) throw c10::OutOfMemoryError(
      {__func__, __FILE__, static_cast<uint32_t>(__LINE__)}, error);
  TORCH_CHECK(false, error);
}

void refuse(const std::string& name, const std::string& text) {
  g_owner.refuse(name.c_str());
  TORCH_CHECK(false, text);
}

bool is_pinned(const void* address) {
  std::lock_guard<std::mutex> lock(PinnedAllocator::mutex);
  const auto place = reinterpret_cast<uintptr_t>(address);
  auto next = PinnedAllocator::pieces.upper_bound(place);
  if (next == PinnedAllocator::pieces.begin()) return false;
  --next;
  return place < next->first + next->second;
}

at::Tensor empty_strided(at::IntArrayRef sizes, at::IntArrayRef strides, at::ScalarType type) {
  return at::detail::empty_strided_generic(
      sizes, strides, &g_allocator, c10::DispatchKeySet(c10::DispatchKey::CUDA), type);
}

at::Generator host_generator(const at::Generator& generator) {
  if (!generator.defined() || generator.device().type() != c10::kCUDA) return generator;
  return static_cast<DeviceGenerator*>(generator.unsafeGetGeneratorImpl())->host;
}

const at::Generator& default_generator() {
  static const at::Generator generator = new_generator();
  return generator;
}

}  // namespace torch_device

extern "C" {

// Registers the operators, which takes most of the time of an installation. Forks inherit it.
__attribute__((visibility("default"))) void torch_device_prepare() {
  if (!torch_device::g_prepared.exchange(true)) torch_device::register_operators();
}

// Makes the device exist. Returns 0, or 1 when PyTorch was imported before this library was loaded.
__attribute__((visibility("default"))) int torch_device_install(
    const torch_device::Owner* owner, int policy) {
  using namespace torch_device;
  g_owner = *owner;
  g_policy = static_cast<Policy>(policy);
  if (g_installed.exchange(true)) return 0;
  c10::impl::DeviceGuardImplRegistrar(c10::kCUDA, new Guard);
  c10::SetAllocator(c10::kCUDA, &g_allocator);
  torch_device_prepare();
  if (charges()) register_composites();
  return g_registration.for_gpus || at::detail::getCUDAHooks().hasCUDA() ? 0 : 1;
}

__attribute__((visibility("default"))) void torch_device_capture(int capturing) {
  torch_device::g_capturing = capturing != 0;
}

// Takes up to `most` freed addresses and returns their number.
__attribute__((visibility("default"))) uint64_t torch_device_released(uint64_t* addresses,
                                                                      uint64_t most) {
  using namespace torch_device;
  std::lock_guard<std::mutex> lock(g_released_mutex);
  const uint64_t count = std::min<uint64_t>(most, g_released.size());
  std::copy(g_released.end() - static_cast<int64_t>(count), g_released.end(), addresses);
  g_released.resize(g_released.size() - count);
  return count;
}
}
