#pragma once
int scaled(int value);
