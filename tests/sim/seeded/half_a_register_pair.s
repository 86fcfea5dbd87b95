; fault: uninitialised_register at 8
; launch: 1 | 64 | f32(64), zeros(128)
; the upper half of an address is never set
	s_load_dwordx4 s[4:7], s[0:1], 0x0
	v_lshlrev_b32_e32 v1, 3, v0
	s_waitcnt lgkmcnt(0)
	v_mov_b32_e32 v4, s4
	v_lshl_add_u64 v[6:7], v[4:5], 0, 0
	global_store_dwordx2 v1, v[6:7], s[6:7]
