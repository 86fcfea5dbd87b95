// Tables of live handles: a pointer that a program gives is followed only if it is in its table.
#pragma once

#include <memory>
#include <mutex>
#include <unordered_map>

// The objects of one kind. A handle is the address of its object.
template <class T>
class Handles {
 public:
  T* add(T value) {
    auto object = std::make_unique<T>(std::move(value));
    T* handle = object.get();
    std::lock_guard<std::mutex> guard(lock_);
    objects_[handle] = std::move(object);
    return handle;
  }
  bool has(const void* handle) {
    std::lock_guard<std::mutex> guard(lock_);
    return objects_.count(handle);
  }
  bool remove(const void* handle) {  // false: there is no such handle
    std::lock_guard<std::mutex> guard(lock_);
    return objects_.erase(handle);
  }

 private:
  std::mutex lock_;
  std::unordered_map<const void*, std::unique_ptr<T>> objects_;
};

// The table of a kind. It is never destroyed: destructors of the program may still call.
template <class T>
Handles<T>& handles() {
  static auto* table = new Handles<T>;
  return *table;
}
