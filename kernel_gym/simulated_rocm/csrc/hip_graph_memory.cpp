// HIP host runtime: nodes of graphs that allocate and free memory, and how much of it is in use.
//
// The address is known when the node is made, so the memory is there as long as a node or an
// instance may allocate it again. In use it is from a launch of that node until it is freed, in a
// graph or not.
#include <cstring>
#include <map>
#include <memory>
#include <mutex>

#include "hip_graphs.h"
#include "hip_memory.h"

extern "C" int hipFree(void*);

namespace {

enum : int { kAllocationNode = 10, kFreeNode = 11, kPinned = 1, kOnDevice = 1 };

struct PoolProperties {
  int type, handles, location_type, location;
  void* security;
  size_t most;
  unsigned char reserved[56];
};
struct AllocationParams {
  PoolProperties pool;
  const void* access;
  size_t access_count, size;
  void* pointer;
};

struct Memory {
  uint64_t place;
  size_t size;
};
// What graphs have allocated: in use now, and at most.
struct Account {
  std::recursive_mutex lock;
  std::map<uint64_t, std::weak_ptr<Memory>> known;
  std::map<uint64_t, std::shared_ptr<Memory>> in_use;
  size_t now = 0;
  size_t most[2] = {0, 0};  // in use, and reserved, which is the same here
};
Account& account() {
  static auto* one = new Account;  // never destroyed: destructors of the program may still call
  return *one;
}
using Lock = std::lock_guard<std::recursive_mutex>;

void give_back(Memory* memory) {
  {
    Lock hold(account().lock);
    account().known.erase(memory->place);
  }
  gpu().release(memory->place);
  delete memory;
}

int use(const std::shared_ptr<Memory>& memory) {
  Account& a = account();
  Lock hold(a.lock);
  if (!a.in_use.emplace(memory->place, memory).second) return hip_note(kInvalidValue);
  a.now += memory->size;
  for (size_t& most : a.most) most = std::max(most, a.now);
  return hip_note(kSuccess);
}

// Frees memory of graphs; false for an address that no graph has.
bool free_memory(uint64_t place, int* error) {
  Account& a = account();
  std::shared_ptr<Memory> kept;  // its end must not come under the lock
  Lock hold(a.lock);
  if (!a.known.count(place)) return false;
  const auto entry = a.in_use.find(place);
  *error = entry == a.in_use.end() ? kInvalidValue : kSuccess;
  if (*error) return true;
  kept = entry->second;
  a.in_use.erase(entry);
  a.now -= kept->size;
  return true;
}

std::shared_ptr<Memory> reserve(size_t size) {
  const uint64_t place = gpu().allocate(size);
  if (!place) return nullptr;
  hip_watch_free(free_memory);
  std::shared_ptr<Memory> memory(new Memory{place, size}, give_back);
  Lock hold(account().lock);
  account().known[place] = memory;
  return memory;
}

bool is_allocation(const void* pointer) {
  uint64_t start = 0, bytes = 0;
  int visible = 0;
  const bool found = gpu().range && !gpu().range(address_of(pointer), &start, &bytes, &visible);
  return found && start == address_of(pointer);
}
bool is_allowed(const AllocationParams& params) {
  const PoolProperties& pool = params.pool;
  return params.size && pool.type == kPinned && pool.location_type == kOnDevice && !pool.location;
}
template <class T>
int get(const GraphNode* node, int type, T* params) {
  const bool is_known = params && handles<GraphNode>().has(node) && node->type == type;
  if (!is_known || node->params.size() != sizeof(T)) return hip_note(kInvalidValue);  // or captured
  std::memcpy(params, node->params.data(), sizeof(T));
  return hip_note(kSuccess);
}
template <class T>
std::string bytes_of(const T& value) {
  return {reinterpret_cast<const char*>(&value), sizeof value};
}

int check_device(int ordinal) { return hip_note(ordinal == 0 ? kSuccess : kInvalidDevice); }
enum : int { kAttributes = 4 };  // in use and reserved: each now, and at most

}  // namespace

int hip_queue_allocation(void** pointer, size_t size, const void* stream) {
  if (!pointer || !size) return hip_note(kInvalidValue);
  const std::shared_ptr<Memory> memory = reserve(size);
  if (!memory) return hip_note(kOutOfMemory);
  *pointer = reinterpret_cast<void*>(memory->place);
  return hip_queue(stream, [memory] { return use(memory); }, kAllocationNode);
}
int hip_queue_free(void* pointer, const void* stream) {
  return hip_queue(stream, [pointer] { return hipFree(pointer); }, kFreeNode);
}

extern "C" {

int hipGraphAddMemAllocNode(GraphNode** node, Graph* graph, GraphNode* const* before, size_t count,
                            AllocationParams* params) {
  if (!params) return hip_note(kInvalidValue);
  params->pointer = nullptr;
  if (!node || !handles<Graph>().has(graph) || !is_allowed(*params)) return hip_note(kInvalidValue);
  const std::shared_ptr<Memory> memory = reserve(params->size);
  if (!memory) return hip_note(kOutOfMemory);
  AllocationParams kept = *params;
  kept.pointer = reinterpret_cast<void*>(memory->place);
  const auto work = [memory] { return use(memory); };
  const int wrong = hip_add_checked_node(node, graph, before, count,
                                         {kAllocationNode, work, bytes_of(kept), graph, {}});
  if (!wrong) params->pointer = kept.pointer;
  return wrong;
}
int hipGraphMemAllocNodeGetParams(GraphNode* node, AllocationParams* params) {
  return get(node, kAllocationNode, params);
}
int hipGraphAddMemFreeNode(GraphNode** node, Graph* graph, GraphNode* const* before, size_t count,
                           void* pointer) {
  if (!pointer || (before && !count) || !is_allocation(pointer)) return hip_note(kInvalidValue);
  const auto work = [pointer] { return hipFree(pointer); };
  return hip_add_checked_node(node, graph, before, count,
                              {kFreeNode, work, bytes_of(pointer), graph, {}});
}
int hipGraphMemFreeNodeGetParams(GraphNode* node, void** pointer) {
  return get(node, kFreeNode, pointer);
}

int hipDeviceGetGraphMemAttribute(int ordinal, int attribute, uint64_t* value) {
  if (const int wrong = check_device(ordinal)) return wrong;
  if (attribute < 0 || attribute >= kAttributes) return hip_note(kInvalidValue);
  Lock hold(account().lock);
  const bool is_most = attribute % 2;
  return hip_store<uint64_t>(value, is_most ? account().most[attribute / 2] : account().now);
}
// The marks of the most can be set back to what is in use now.
int hipDeviceSetGraphMemAttribute(int ordinal, int attribute, const uint64_t* value) {
  if (const int wrong = check_device(ordinal)) return wrong;
  const bool is_most = attribute >= 0 && attribute < kAttributes && attribute % 2;
  if (!is_most || !value || *value) return hip_note(kInvalidValue);
  Lock hold(account().lock);
  account().most[attribute / 2] = account().now;
  return hip_note(kSuccess);
}
int hipDeviceGraphMemTrim(int ordinal) { return check_device(ordinal); }  // nothing is kept

}  // extern "C"
