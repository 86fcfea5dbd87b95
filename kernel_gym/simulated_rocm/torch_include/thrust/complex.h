// What PyTorch's headers need of thrust::complex, where rocThrust is not installed. The functions are
// declared only: a kernel that uses one of complex numbers does not link.
#pragma once

namespace thrust {

template <class T>
class complex {
 public:
  __host__ __device__ complex(const T& real = T(), const T& imaginary = T())
      : real_(real), imaginary_(imaginary) {}
  __host__ __device__ T real() const { return real_; }
  __host__ __device__ T imag() const { return imaginary_; }

 private:
  T real_, imaginary_;
};

#define KERNEL_GYM_DECLARE(result, name) \
  template <class T>                     \
  __host__ __device__ result name(const complex<T>&);
KERNEL_GYM_DECLARE(T, abs)
KERNEL_GYM_DECLARE(T, arg)
KERNEL_GYM_DECLARE(T, norm)
KERNEL_GYM_DECLARE(complex<T>, conj)
KERNEL_GYM_DECLARE(complex<T>, proj)
KERNEL_GYM_DECLARE(complex<T>, exp)
KERNEL_GYM_DECLARE(complex<T>, log)
KERNEL_GYM_DECLARE(complex<T>, log10)
KERNEL_GYM_DECLARE(complex<T>, sqrt)
KERNEL_GYM_DECLARE(complex<T>, sin)
KERNEL_GYM_DECLARE(complex<T>, cos)
KERNEL_GYM_DECLARE(complex<T>, tan)
KERNEL_GYM_DECLARE(complex<T>, asin)
KERNEL_GYM_DECLARE(complex<T>, acos)
KERNEL_GYM_DECLARE(complex<T>, atan)
KERNEL_GYM_DECLARE(complex<T>, sinh)
KERNEL_GYM_DECLARE(complex<T>, cosh)
KERNEL_GYM_DECLARE(complex<T>, tanh)
KERNEL_GYM_DECLARE(complex<T>, asinh)
KERNEL_GYM_DECLARE(complex<T>, acosh)
KERNEL_GYM_DECLARE(complex<T>, atanh)
#undef KERNEL_GYM_DECLARE
template <class T, class U>
__host__ __device__ complex<T> pow(const complex<T>&, const U&);
template <class T, class U>
__host__ __device__ complex<T> pow(const T&, const complex<U>&);
template <class T>
__host__ __device__ complex<T> polar(const T&, const T& = T());

}  // namespace thrust
